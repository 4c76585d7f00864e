/** Which of the ports that `up` needs can't be had, in one line. */
import { listenError } from '../../platform/node/free-port.js';
import type { PortUse } from './plan.js';
import { addressText } from '../../config/keys/values.js';

/** One line about all ports that can't be had, '' when all can. */
export async function busyPortsText(uses: readonly PortUse[]): Promise<string> {
  const busy: string[] = [];
  const refused: string[] = [];
  const texts = uses.map(({ address }) => addressText(address));
  uses.forEach(({ address, use }, i) => {
    if (address.port === 0 || texts.indexOf(texts[i] ?? '') === i) return;
    refused.push(`port ${String(address.port)} (${use}) is asked for twice`);
  });
  for (const use of uses) {
    const error = await listenError(use.address.host, use.address.port);
    if (error?.code === 'EADDRINUSE') busy.push(`${String(use.address.port)} (${use.use})`);
    else if (error !== undefined) {
      refused.push(
        `${addressText(use.address)} (${use.use}) can't be opened: ${error.code ?? error.message}`,
      );
    }
  }
  if (busy.length > 0) refused.unshift(`port${busy.length > 1 ? 's' : ''} ${busy.join(', ')} in use`);
  return refused.length === 0
    ? '' : `${refused.join('; ')}. Stop what listens there, or choose other ports with --config FILE`;
}
