/** Reads the configuration for a verb; what is wrong with it becomes the verb's error, one line each. */
import { SECRET_CHARACTERS_MIN } from '../config/checks.js';
import { EMBEDDED_NAME, EMBEDDED_UP_YAML } from '../config/embedded.js';
import { loadConfigFile, parseConfig } from '../config/load.js';
import type { LoadOptions, LoadResult } from '../config/load.js';
import type { Config } from '../config/types.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';

/** Set by `up` for its processes. */
export const UP_VARIABLE = 'TWINPOST_UP';
export const SECRET_VARIABLE = 'TWINPOST_SECRET';
/**
 * Folder of the register file that another process of this machine keeps and serves; it stands for `register:
 * file`.
 */
export const REGISTER_VARIABLE = 'TWINPOST_REGISTER_DIR';

/** `verb` is what the operator called, when that is not the role's own name. */
export function loadFor(role: LoadOptions['role'], file: string | undefined, stateDir: string | undefined, context: CliContext, verb: string = role): Config {
  const underUp = context.environment[UP_VARIABLE] !== undefined;
  const secret = context.environment[SECRET_VARIABLE];
  if (secret !== undefined && secret.length < SECRET_CHARACTERS_MIN) throw new CliError(`${SECRET_VARIABLE} in the environment has ${String(secret.length)} characters; it needs at least ${String(SECRET_CHARACTERS_MIN)}`);
  const registerDir = context.environment[REGISTER_VARIABLE];
  const options: LoadOptions = { role: underUp ? 'up' : role, secret, stateDir, registerDir };
  let result: LoadResult;
  if (file !== undefined) result = loadConfigFile(file, options);
  else if (underUp || role === 'up') result = parseConfig(EMBEDDED_UP_YAML, EMBEDDED_NAME, options);
  else throw new CliError(`${verb} needs --config FILE; configs/${role}.yaml is an example`);
  if (!result.ok) throw new CliError(result.errors.join('\n'));
  return result.config;
}
