/**
 * `twinpost dkim key DOMAIN`: makes a key that a domain signs with (`dkim` of a gateway), into a file that is
 * its owner's alone, and prints the record that the domain publishes (RFC 6376 3.6.1, RFC 8463 4).
 */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyPairKeyObjectResult } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { Argv } from 'yargs';
import { domain as domainKey, selector as selectorKey } from '../config/keys/values.js';
import { publicRecord, recordName } from '../gateway/dkim/node/public-record.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';

const RSA_BITS = 2048;
const KEY_MODE = 0o600;
/** Octets of one character-string of a TXT record (RFC 1035 3.3). */
const STRING_OCTETS_MAX = 255;

export function dkimCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('dkim', 'keys that mail is signed with', (dkim) =>
    dkim
      .command(
        'key <domain>',
        'make a private key for gateway.dkim, and print the DNS record of its public key',
        (args) =>
          args
            .positional('domain', { type: 'string', demandOption: true, describe: 'of the From of its mail' })
            .option('selector', {
              type: 'string', demandOption: true,
              describe: 'a name that this domain has used for no key before, such as s2026',
            })
            .option('ed25519', {
              type: 'boolean', default: false, describe: 'a second key beside RSA; else RSA of 2048 bits',
            })
            .option('out', {
              type: 'string', demandOption: true, describe: 'the new file for the private key, mode 600',
            })
            .example('$0 dkim key example.com --selector s2026 --out example.com.pem', 'an RSA key'),
        ({ domain, selector, ed25519, out }) => {
          const name = recordName(checked(domainKey(), domain), checked(selectorKey(), selector));
          const { privatePem, record } = newKey(
            ed25519 ? generateKeyPairSync('ed25519')
              : generateKeyPairSync('rsa', { modulusLength: RSA_BITS }),
          );
          writeNew(out, privatePem);
          context.terminal.print(`${name}. IN TXT ( ${strings(record).join(' ')} )`);
          done(0);
        },
      )
      .example('$0 dkim key example.com --selector s2026 --out example.com.pem', 'an RSA key')
      .demandCommand(1, 'dkim what? twinpost dkim key DOMAIN --selector NAME --out FILE'),
  );
}

/** As the configuration takes it. */
function checked(kind: ReturnType<typeof domainKey>, value: string): string {
  const result = kind.safeParse(value);
  if (result.success) return result.data;
  const expected = result.error.issues[0]?.message ?? 'something else';
  throw new CliError(`dkim key: expected ${expected}, found ${JSON.stringify(value)}`);
}

interface NewKey {
  readonly privatePem: string;
  readonly record: string;
}

function newKey({ privateKey, publicKey }: KeyPairKeyObjectResult): NewKey {
  const privatePem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { privatePem, record: publicRecord(publicKey) };
}

/** A key that is there may be in use: it is never written over. */
function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: KEY_MODE });
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'it is there already, and is left as it is' : code;
    throw new CliError(`dkim key: '${file}' can't be written: ${why}`);
  }
}

function strings(record: string): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < record.length; at += STRING_OCTETS_MAX) {
    parts.push(`"${record.slice(at, at + STRING_OCTETS_MAX)}"`);
  }
  return parts;
}
