/**
 * The effective configuration as YAML: every key with the value in force, in the words of the file, so that
 * it can be kept as a file again. Secrets and tokens are masked.
 */
import { stringify } from 'yaml';
import { termsOfHop, tlsLevel } from './checks.js';
import { wholeHook } from './hooks.js';
import { shown, shownChanges } from './keys/key.js';
import { fileSchema } from './keys/schema.js';
import type { FileValue } from './keys/schema.js';
import type { Config } from './types.js';

/** `memoryBytes` is the limit of a process whose section names none. */
export function effectiveYaml(value: FileValue, config: Config, memoryBytes: number): string {
  return yamlOf(effectiveValue(value, config, memoryBytes));
}

export function yamlOf(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}

/** The same before it is text. */
export function effectiveValue(value: FileValue, config: Config, memoryBytes: number): unknown {
  return shown(fileSchema, withComputed(value, config, memoryBytes));
}

/** What of the file is no default, in its words: the same configuration, and a file again. */
export function changedValue(value: FileValue): unknown {
  return shownChanges(fileSchema, value);
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
      hostname: config.gateway?.hostName,
      smtp: { ...gateway.smtp, hooks: gateway.smtp.hooks.map(wholeHook) },
      routes: gateway.routes.map((route, i) => {
        const built = config.gateway?.routes[i];
        return {
          ...route, name: built?.name, order: built?.ordering, concurrency: built?.concurrency,
          // Of the hosts without terms of their own. Others go by their scheme, where the file says nothing.
          tls: tlsLevel(route.tls, route.via[0]?.isTlsFirst === true),
          hosts: route.hosts?.map((own) => ({ ...own, tls: termsOfHop(route, own.host).level })),
          // By MX each domain has a queue, whatever the file leaves out.
          ...(built?.nextHop.isByMx === true
            ? { queues: 'domain', lanes: undefined, lanes_by: undefined } : {}),
        };
      }),
    }) }),
    ...(value.store === undefined ? {} : { store: limited(value.store) }),
    ...(value.stores === undefined ? {} : { stores: value.stores.map(limited) }),
  };
}
