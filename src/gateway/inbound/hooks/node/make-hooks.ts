/** Makes the hooks of the configuration (smtp.hooks): one chain for all listeners of a process. */
import type { ChainedHook, HookChainPorts } from '../hook-chain.js';
import { HookChain } from '../hook-chain.js';
import type { MessageHook } from '../message-hook.js';
import { ModuleHook } from './module-hook.js';
import type { ModuleHookOptions, ModuleHookPorts } from './module-hook.js';
import { RspamdHook } from './rspamd-hook.js';
import type { RspamdHookOptions } from './rspamd-hook.js';

type HookKind =
  | (Omit<RspamdHookOptions, 'hostName'> & { readonly kind: 'rspamd' })
  | (ModuleHookOptions & { readonly kind: 'module' });

export type HookOptions = HookKind & Pick<ChainedHook, 'onFailure'>;

/** Undefined where there is none: then nobody asks, nor keeps anything for it. */
export function makeHooks(
  hooks: readonly HookOptions[], hostName: string, ports: HookChainPorts & ModuleHookPorts,
): HookChain | undefined {
  if (hooks.length === 0) return undefined;
  const make = (options: HookOptions): MessageHook => (options.kind === 'rspamd'
    ? new RspamdHook({ ...options, hostName }, ports) : new ModuleHook(options, ports));
  const chained = hooks.map((options) => ({ hook: make(options), onFailure: options.onFailure }));
  return new HookChain(chained, ports);
}
