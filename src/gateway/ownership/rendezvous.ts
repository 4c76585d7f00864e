/**
 * In which order the gateways of a group take a partition up: by this number, the lowest first. The same at
 * all gateways, and another order for each partition, so that the mail of a dead gateway spreads.
 *
 * FNV-1a over both names. It alone would keep one order for all: ids that differ in one character, followed
 * by names that are nearly the same, differ in few bits. So these are mixed (the finalizer of MurmurHash3).
 */
export function rendezvous(gatewayId: string, partition: string): number {
  let hash = 0x811c9dc5;
  const text = `${gatewayId} ${partition}`;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
