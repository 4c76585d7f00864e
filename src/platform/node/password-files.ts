/**
 * Our own passwords, for next hops (`auth` of a route): a file each, whose first line is the password. Judged
 * by `config check` and by the start alike; looked at again for each connection that is made. A file that
 * can't be used never replaces a password that can.
 */
import { errorText } from '../../base/error-text.js';
import type { EventLog, PasswordFound, Passwords } from '../ports.js';
import { FollowedFile } from './changing-files.js';
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

export class PasswordFiles implements Passwords {
  readonly #ports: PasswordFilesPorts;
  /** By file; as many as routes name. */
  readonly #known = new Map<string, FollowedFile<PasswordFound>>();

  constructor(ports: PasswordFilesPorts) {
    this.#ports = ports;
  }

  read(file: string): PasswordFound {
    const known = this.#known.get(file);
    if (known !== undefined) {
      if (known.look()) this.#tell(file, known.why);
      return known.current;
    }
    // What was never good is read each time.
    try {
      const followed = new FollowedFile<PasswordFound>([file], () => (
        { isFound: true, password: readPassword(file) }));
      this.#known.set(file, followed);
      return followed.current;
    } catch (error) {
      return { isFound: false, why: errorText(error) };
    }
  }

  #tell(file: string, why: string): void {
    const { log, onRead } = this.#ports;
    if (why === '') log.info('auth', 'a password for next hops was read anew', { file });
    else log.error('auth', 'a new password for next hops can\'t be used, the old one stays', { file, why });
    onRead([...this.#known.values()].some((each) => each.why !== ''));
  }
}
