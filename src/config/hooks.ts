/** From `smtp.hooks` of a file to the hooks of a gateway: their names, and the defaults of each kind. */
import path from 'node:path';
import type { HookOptions } from '../gateway/inbound/hooks/node/make-hooks.js';
import type { HookValue } from './schema.js';

const THREADS = 1;
const HEAP_BYTES = 128 * 1024 * 1024;

/** What it is called in the log and in metrics. */
export function hookName({ name, module }: HookValue): string {
  if (name !== undefined) return name;
  return module === undefined ? 'rspamd' : path.parse(module).name;
}

/** With the defaults that only a module has. */
export function wholeHook(hook: HookValue): HookValue {
  const named = { ...hook, name: hookName(hook) };
  if (hook.module === undefined) return named;
  return { ...named, threads: hook.threads ?? THREADS, heap: hook.heap ?? HEAP_BYTES };
}

/** `secret` reads a file with a password. */
export function hookOptions(
  hook: HookValue, folder: string, secret: (file: string) => string,
): HookOptions {
  const { rspamd, module = '', password_file, timeout: timeoutMs, on_failure: onFailure } = hook;
  const name = hookName(hook);
  if (rspamd !== undefined) {
    const password = password_file === undefined ? '' : secret(password_file);
    return { kind: 'rspamd', name, url: rspamd, timeoutMs, onFailure, password };
  }
  const { threads = THREADS, heap: heapBytes = HEAP_BYTES } = hook;
  const file = path.resolve(folder, module);
  return { kind: 'module', name, file, timeoutMs, onFailure, threads, heapBytes };
}
