/** In which order addresses of a host are tried: families in turns, since one may lead nowhere from here. */
import { isIpv6 } from './source-choice.js';

/** One of each list after the other. */
export function inTurns(lists: readonly (readonly string[])[]): string[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_none, at) => lists.flatMap((list) => list[at] ?? [])).flat();
}

/** As the system orders them, the family that it would take first before the other; before all `first`. */
export function systemTurns(addresses: readonly string[], first: string): string[] {
  const [top = ''] = addresses;
  const isOfTop = (address: string): boolean => isIpv6(address) === isIpv6(top);
  const turns = inTurns([addresses.filter(isOfTop), addresses.filter((address) => !isOfTop(address))]);
  return turns.includes(first) ? [first, ...turns.filter((address) => address !== first)] : turns;
}
