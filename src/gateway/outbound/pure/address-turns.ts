/** In which order addresses of a host are tried: families in turns, since one may lead nowhere from here. */
import { isIpv6 } from './source-choice.js';

/** One of each list after the other. */
export function inTurns(lists: readonly (readonly string[])[]): string[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_none, at) => lists.flatMap((list) => list[at] ?? [])).flat();
}

/**
 * As the system orders them, the family that it would take first before the other; behind all others those
 * of `bad`, in the same order.
 */
export function systemTurns(addresses: readonly string[], bad: readonly string[]): string[] {
  const [top = ''] = addresses;
  const isOfTop = (address: string): boolean => isIpv6(address) === isIpv6(top);
  const turns = inTurns([addresses.filter(isOfTop), addresses.filter((address) => !isOfTop(address))]);
  const isBad = (address: string): boolean => bad.includes(address);
  return [...turns.filter((address) => !isBad(address)), ...turns.filter(isBad)];
}
