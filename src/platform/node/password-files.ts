/**
 * Our own passwords, for next hops (`auth` of a route): a file each, whose first line is the password. Judged
 * by `config check` and by the start alike; looked at again for each connection that is made. A file that
 * can't be used never replaces a password that can.
 */
import { errorText } from '../../base/error-text.js';
import type { EventLog, PasswordFound, Passwords } from '../ports.js';
import { stampOf } from './changing-files.js';
import { readSecretFile } from './secret-file.js';

/** With a user of the configuration it makes a line that each server takes (RFC 4954 4: 12,288 octets). */
const PASSWORD_BYTES_MAX = 1024;

/** Throws an Error that names the file. */
export function readPassword(file: string): string {
  const [password = '', ...more] = readSecretFile(file, 'a password', PASSWORD_BYTES_MAX).split(/\r?\n/);
  if (password === '') throw new Error(`'${file}' has no password in its first line`);
  if (more.some((line) => line !== '')) throw new Error(`'${file}' has more than one line`);
  // No mechanism takes NUL (RFC 4616 2); others are a mistake, as in a file that is not UTF-8.
  if (/[\u0000-\u001f\u007f\ufffd]/.test(password)) {
    throw new Error(`'${file}' has a password with control characters, or is no UTF-8`);
  }
  return password;
}

export interface PasswordFilesPorts {
  readonly log: EventLog;
  /** Some file can't be used, and the password that was read before stays; or all can. */
  onRead(isStale: boolean): void;
}

interface KnownPassword {
  stamp: string;
  found: PasswordFound;
  isStale: boolean;
}

export class PasswordFiles implements Passwords {
  readonly #ports: PasswordFilesPorts;
  /** By file; as many as routes name. */
  readonly #known = new Map<string, KnownPassword>();

  constructor(ports: PasswordFilesPorts) {
    this.#ports = ports;
  }

  read(file: string): PasswordFound {
    const stamp = stampOf(file);
    const known = this.#known.get(file);
    if (known === undefined) {
      const found = foundIn(file);
      this.#known.set(file, { stamp, found, isStale: false });
      return found;
    }
    // What was never good is looked at each time: a change of its mode changes no stamp.
    if (known.stamp === stamp && known.found.isFound) return known.found;
    known.stamp = stamp;
    this.#renew(file, known);
    return known.found;
  }

  #renew(file: string, known: KnownPassword): void {
    const { log, onRead } = this.#ports;
    const found = foundIn(file);
    known.isStale = !found.isFound && known.found.isFound;
    if (known.isStale) {
      const why = found.isFound ? '' : found.why;
      log.error('auth', 'a new password for next hops can\'t be used, the old one stays', { file, why });
    } else {
      known.found = found;
      if (found.isFound) log.info('auth', 'a password for next hops was read anew', { file });
    }
    onRead([...this.#known.values()].some(({ isStale }) => isStale));
  }
}

function foundIn(file: string): PasswordFound {
  try {
    return { isFound: true, password: readPassword(file) };
  } catch (error) {
    return { isFound: false, why: errorText(error) };
  }
}
