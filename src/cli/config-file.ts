/** Reads the configuration for a verb; what is wrong with it becomes the verb's error, one line each. */
import path from 'node:path';
import { SECRET_CHARACTERS_MIN } from '../config/checks.js';
import { EMBEDDED_NAME, EMBEDDED_UP_YAML } from '../config/embedded.js';
import { loadConfigFile, parseConfig } from '../config/load.js';
import type { LoadOptions, LoadResult } from '../config/load.js';
import type { Config, GatewayConfig, StoreConfig } from '../config/types.js';
import { upConfig } from '../config/up-gateways.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import type { CliContext, FileReadAgain, GatewayFile, StoreFile } from './context.js';
import { CliError, UsageError } from './context.js';
import { requireStateDir } from './folders.js';

/** Set by `up` for its processes: how many gateways it runs. */
export const UP_VARIABLE = 'TWINPOST_UP';
/** Set by `up` for each of several gateways: its number, from 1. */
export const UP_GATEWAY_VARIABLE = 'TWINPOST_UP_GATEWAY';
export const SECRET_VARIABLE = 'TWINPOST_SECRET';
/**
 * Folder of the register file that another process of this machine keeps and serves; it stands for `register:
 * file`.
 */
export const REGISTER_VARIABLE = 'TWINPOST_REGISTER_DIR';

/** `verb` is what the operator called, when that is not the role's own name. */
export function loadFor(
  role: LoadOptions['role'], file: string | undefined, stateDir: string | undefined, context: CliContext,
  verb: string = role,
): Config {
  return readFor(role, file, stateDir, context, verb).config;
}

/** Any file that `config check` takes, whatever runs by it: for who only looks at it. */
export function loadAny(file: string, { environment }: CliContext): Read {
  const result = loadConfigFile(file, { role: 'check', secret: environment[SECRET_VARIABLE] });
  if (!result.ok) throw new CliError(result.errors.join('\n'));
  return result;
}

/** The limit of a process whose section names none. */
export function memoryBytesOf({ gateway, stores }: Config): number {
  return defaultMemoryBytes((gateway ?? stores[0])?.oneHost === true);
}

/** The section gateway of a file, which may be read again; `asRun`: what the verb makes of it. */
export function gatewayFile(
  file: string | undefined, stateDir: string | undefined, context: CliContext, verb: string,
  asRun: (config: GatewayConfig, file: string) => GatewayConfig,
): GatewayFile {
  const again = (): FileReadAgain<GatewayConfig> => {
    const { config, value, contents, place } = readFor('gateway', file, stateDir, context, verb);
    const { gateway } = config;
    if (gateway === undefined) {
      throw new CliError(`${config.file}:1: gateway: expected this section, found nothing`);
    }
    return { config: asRun(gateway, config.file), keys: { value, contents }, place, again };
  };
  const { config, keys } = again();
  requireStateDir(config, stateDir);
  return { config, keys, again };
}

/** The section of one store, likewise. */
export function storeFile(
  file: string | undefined, context: CliContext, asRun: (config: Config) => StoreConfig,
): StoreFile {
  const again = (): FileReadAgain<StoreConfig> => {
    const { config, value, contents, place } = readFor('store', file, undefined, context, 'store');
    return { config: asRun(config), keys: { value, contents }, place, again };
  };
  const { config, keys } = again();
  return { config, keys, again };
}

type Read = Extract<LoadResult, { readonly ok: true }>;

function readFor(
  role: LoadOptions['role'], file: string | undefined, stateDir: string | undefined, context: CliContext,
  verb: string,
): Read {
  const underUp = context.environment[UP_VARIABLE] !== undefined;
  const secret = context.environment[SECRET_VARIABLE];
  if (secret !== undefined && secret.length < SECRET_CHARACTERS_MIN) {
    throw new CliError(`${SECRET_VARIABLE} in the environment has ${String(secret.length)} characters; it `
      + `needs at least ${String(SECRET_CHARACTERS_MIN)}`);
  }
  const registerDir = context.environment[REGISTER_VARIABLE];
  const options: LoadOptions = { role: underUp ? 'up' : role, secret, stateDir, registerDir };
  let result: LoadResult;
  // A file that is refused is told to people elsewhere.
  if (file !== undefined) result = loadConfigFile(path.resolve(file), options);
  else if (underUp || role === 'up') result = parseConfig(EMBEDDED_UP_YAML, EMBEDDED_NAME, options);
  else throw new UsageError(`${verb} needs --config FILE; configs/${role}.yaml is an example`);
  if (!result.ok) throw new CliError(result.errors.join('\n'));
  return underUp ? { ...result, config: partOfUp(result.config, context) } : result;
}

/** What the file means to one process of an `up` with several gateways. */
function partOfUp(config: Config, { environment }: CliContext): Config {
  const { gateways, ...own } = upConfig(config, Number(environment[UP_VARIABLE]), defaultMemoryBytes(true));
  const gateway: GatewayConfig | undefined = gateways[Number(environment[UP_GATEWAY_VARIABLE] ?? '1') - 1];
  return { ...own, gateway };
}
