/**
 * The effective configuration as YAML: every key with the value in force, in the words of the file, so that
 * it can be kept as a file again. Secrets and tokens are masked.
 */
import { stringify } from 'yaml';
import { wholeHook } from './hooks.js';
import { SECRET_KEYS } from './problems.js';
import type { FileValue } from './schema.js';
import type { Config } from './types.js';

const MASK = '(hidden)';
/** Keys whose numbers are bytes; every other number under a key of DURATIONS is milliseconds. */
const BYTES = new Set(['message_size_limit', 'window', 'limit', 'ring', 'rebalance_rate', 'data', 'heap']);
const DURATIONS = new Set([
  'first', 'max', 'lifetime', 'bounce_lifetime', 'connection_lifetime', 'connection_idle', 'stop_timeout',
  'connect', 'greeting', 'helo', 'mail', 'rcpt', 'data_init', 'data_block', 'data_done', 'quit',
  'command_timeout', 'data_timeout', 'commit_timeout', 'heartbeat', 'failover_timeout', 'lease',
  'replace_after', 'delay_after', 'timeout',
]);

/**
 * Largest first. A value is shown in the largest unit that divides it: what is printed is what is in force.
 */
const BYTE_UNITS = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]] as const;
const TIME_UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000], ['ms', 1]] as const;

/** `memoryBytes` is the limit of a process whose section names none. */
export function effectiveYaml(value: FileValue, config: Config, memoryBytes: number): string {
  return stringify(worded('', withComputed(value, config, memoryBytes)), { lineWidth: 0 });
}

/** Defaults that are no constants of the schema: they follow from other keys or from this machine. */
function withComputed(value: FileValue, config: Config, memoryBytes: number): object {
  const limited = <Section extends { readonly memory: { readonly limit?: number | undefined } }>(
    section: Section,
  ): Section => ({ ...section, memory: { ...section.memory, limit: section.memory.limit ?? memoryBytes } });
  const { gateway } = value;
  return {
    ...value,
    ...(gateway === undefined ? {} : { gateway: limited({
      ...gateway,
      hostname: config.gateway?.hostname,
      smtp: { ...gateway.smtp, hooks: gateway.smtp.hooks.map(wholeHook) },
      routes: gateway.routes.map((route, i) => {
        const built = config.gateway?.routes[i];
        return {
          ...route, name: built?.name, order: built?.ordering, concurrency: built?.concurrency,
          pipeline_across_messages: built?.pipelinesAcross,
        };
      }),
    }) }),
    ...(value.store === undefined ? {} : { store: limited(value.store) }),
    ...(value.stores === undefined ? {} : { stores: value.stores.map(limited) }),
  };
}

function worded(key: string, value: unknown): unknown {
  if (SECRET_KEYS.has(key) && typeof value === 'string') return MASK;
  if (typeof value === 'number') {
    if (BYTES.has(key)) return exact(value, BYTE_UNITS);
    if (DURATIONS.has(key)) return exact(value, TIME_UNITS);
    return key === 'min_data_rate' ? `${exact(value, BYTE_UNITS)}/s` : value;
  }
  if (Array.isArray(value)) return value.map((inner) => worded(key, inner));
  if (typeof value !== 'object' || value === null) return value;
  if ('host' in value && 'port' in value) {
    const { host, port, protocol } = value as { host: string; port: number; protocol?: string };
    const address = `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
    return protocol === undefined ? address : `${protocol}://${address}`;
  }
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== undefined) out[name] = worded(name, inner);
  }
  return out;
}

function exact(value: number, units: readonly (readonly [string, number])[]): string {
  const unit = units.find(([, size]) => value !== 0 && value % size === 0) ?? units[units.length - 1]
    ?? ['', 1];
  return `${String(value / unit[1])}${unit[0]}`;
}
