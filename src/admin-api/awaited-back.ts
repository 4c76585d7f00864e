/** What a gateway, and its status, say of partitions that other gateways hold after a rescue. */
import type { StatusAnswer } from './gateway-answers.js';

/** Nobody has to do anything. */
export function awaitedBackText({ partitions, holders, seconds }: StatusAnswer['awaited_back']): string {
  const count = `${String(partitions)} ${partitions === 1 ? 'partition' : 'partitions'}`;
  const when = seconds > 0 ? `in ${String(seconds)} s`
    : 'as soon as every copy of it can be reached, or within a minute then';
  return `${count} held by ${holders.join(', ')}, handed back ${when}`;
}
