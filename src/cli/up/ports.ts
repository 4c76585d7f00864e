/** Looks whether ports are free by listening on each for a moment. */
import net from 'node:net';
import type { PortUse } from './plan.js';
import { addressText } from './plan.js';

/** One line about all ports that can't be had, '' when all can. */
export async function busyPortsText(uses: readonly PortUse[]): Promise<string> {
  const busy: string[] = [];
  const refused: string[] = [];
  for (const use of uses) {
    const code = await tryPort(use);
    if (code === 'EADDRINUSE') busy.push(`${String(use.address.port)} (${use.use})`);
    else if (code !== '') refused.push(`${addressText(use.address)} (${use.use}) can't be opened: ${code}`);
  }
  if (busy.length > 0) refused.unshift(`port${busy.length > 1 ? 's' : ''} ${busy.join(', ')} in use`);
  return refused.length === 0 ? '' : `${refused.join('; ')}. Stop what listens there, or choose other ports with --config FILE`;
}

function tryPort(use: PortUse): Promise<string> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', (error: NodeJS.ErrnoException) => { resolve(error.code ?? error.message); });
    server.listen({ host: use.address.host, port: use.address.port }, () => { server.close(() => { resolve(''); }); });
  });
}
