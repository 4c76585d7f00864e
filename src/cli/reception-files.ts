/**
 * The files that a gateway needs, as `config check` and its start judge them: certificates with their keys,
 * users, and the table of recipients. They are read again when they change; that they can't be used
 * should be known before.
 */
import { errorText } from '../base/error-text.js';
import type { GatewayConfig } from '../config/types.js';
import { checkTable } from '../gateway/inbound/recipients-file.js';
import { whyNotLoaded } from '../gateway/inbound/hooks/node/module-thread.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { readServerTls } from '../platform/node/server-tls.js';
import { readTlsFiles } from '../platform/node/tls-transport.js';

/** One line that says what is wrong with which file; undefined when nothing is. */
export function whyUnusable({ smtp, mirror }: GatewayConfig): string | undefined {
  const { tls, usersFile, recipientsFile } = smtp;
  return whyNot('smtp.tls', () => { if (tls !== undefined) readServerTls(tls); })
    ?? whyNot('mirror.tls', () => { if (mirror.tls !== undefined) readTlsFiles(mirror.tls); })
    ?? whyNot('smtp.users', () => { if (usersFile !== undefined) readUsers(usersFile); })
    ?? whyNot('smtp.recipients', () => { if (recipientsFile !== undefined) checkTable(recipientsFile); });
}

/** As whyUnusable(), of the modules of `smtp.hooks`: each is loaded as a gateway would load it. */
export async function whyNotLoadable({ smtp }: GatewayConfig): Promise<string | undefined> {
  for (const hook of smtp.hooks) {
    const why = hook.kind === 'module' ? await whyNotLoaded(hook.file, hook.heapBytes) : undefined;
    if (why !== undefined) return `gateway: smtp.hooks: the module of ${hook.name} can't be used: ${why}`;
  }
  return undefined;
}

function whyNot(key: string, read: () => void): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return `gateway: ${key}: ${errorText(error)}`;
  }
}
