/**
 * `twinpost user NAME`: a line for the file of users (gateway/inbound/auth/users.ts), its password from
 * stdin.
 */
import { randomBytes } from 'node:crypto';
import type { Argv } from 'yargs';
import { errorText } from '../base/error-text.js';
import { utf8Text } from '../base/utf8.js';
import { parseUsers } from '../gateway/inbound/auth/users.js';
import { prepared } from '../gateway/inbound/auth/saslprep.js';
import { toAscii } from '../platform/node/idna.js';
import { scramKeys, scryptKey } from '../platform/node/password-key.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';

const SALT_BYTES = 16;
/** 0.1 s of a thread. */
const SCRYPT = { logCost: 15, blockSize: 8, parallelization: 1 };
/** RFC 7677 4 asks for 4,096 at least; this is 10 ms of a thread. */
const SCRAM_ITERATIONS = 16_384;
const PASSWORD_BYTES_MAX = 1024;

export function userCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'user <name>',
    'print a line for smtp.users; the password is the first line of stdin',
    (args) =>
      args
        .positional('name', { type: 'string', demandOption: true, describe: 'who submits' })
        .option('address', {
          type: 'string',
          describe: 'may send from these, with commas: an address, @DOMAIN or *; without any: the name',
        })
        .option('scram', {
          type: 'boolean', default: false,
          describe: 'a verifier for SCRAM-SHA-256, PLAIN and LOGIN; else scrypt, for PLAIN and LOGIN',
        })
        .example('$0 user alice@example.com < password >> users', 'add a user')
        .example('$0 user app1 --address @example.com --scram', 'one who may send from a whole domain'),
    async ({ name, address, scram }) => {
      if (name.includes(':')) {
        throw new CliError(`user: expected a name without ':', which ends it in the file, found '${name}'`);
      }
      const password = await passwordFrom(process.stdin);
      const salt = randomBytes(SALT_BYTES);
      const verifier = scram ? await scramText(password, salt) : await scryptText(password, salt);
      const line = [name, verifier, ...(address === undefined ? [] : [address])].join(':');
      try {
        parseUsers(line, toAscii);
      } catch (error) {
        const why = errorText(error);
        throw new CliError(`user: ${why.replace(/^line 1: /, '')}`);
      }
      context.terminal.print(line);
      done(0);
    },
  );
}

async function passwordFrom(stdin: NodeJS.ReadableStream): Promise<string> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of stdin) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk)]);
    if (bytes.includes('\n') || bytes.length > PASSWORD_BYTES_MAX) break;
  }
  const end = bytes.indexOf('\n');
  const line = end < 0 ? bytes : bytes.subarray(0, end);
  if (line.length > PASSWORD_BYTES_MAX) {
    throw new CliError(`user: the password is longer than ${String(PASSWORD_BYTES_MAX)} bytes`);
  }
  // Clients say it in UTF-8: another one would be right for nobody.
  const text = utf8Text(line, 0, line.length);
  if (text === undefined) throw new CliError('user: expected a password in UTF-8, found other bytes');
  const password = prepared(text.replace(/\r$/, ''));
  if (password === '') throw new CliError('user: no password came on stdin');
  return password;
}

async function scryptText(password: string, salt: Uint8Array): Promise<string> {
  const { logCost, blockSize, parallelization } = SCRYPT;
  const key = await scryptKey(password, salt, SCRYPT);
  return `{SCRYPT}${[logCost, blockSize, parallelization, base64(salt), base64(key)].join()}`;
}

async function scramText(password: string, salt: Uint8Array): Promise<string> {
  const { storedKey, serverKey } = await scramKeys(password, salt, SCRAM_ITERATIONS);
  return `{SCRAM-SHA-256}${[SCRAM_ITERATIONS, base64(salt), base64(storedKey), base64(serverKey)].join()}`;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
