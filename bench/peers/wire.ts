/**
 * One store and one delete of a value as memcached's text protocol and as RESP (redis) have it: the bytes
 * of a batch of such transactions, and the replies to one. Pure.
 *
 *   memcached    set K 0 0 N\r\n…\r\n  delete K\r\n        STORED\r\n  DELETED\r\n
 *   redis set    SET K …  DEL K                            +OK\r\n  :1\r\n
 *   redis list   RPUSH Q …  LPOP Q                         :1\r\n  $N\r\n…\r\n
 */
export const PEER_STORES = ['memcached', 'redis SET+DEL', 'redis list'] as const;
export type PeerStore = (typeof PEER_STORES)[number];

export interface Wire {
  /** The requests of all transactions of a batch. */
  readonly batch: Buffer;
  /** What answers one transaction. */
  readonly reply: Buffer;
}

export function wireOf(store: PeerStore, valueBytes: number, transactions: number): Wire {
  const value = 'x'.repeat(valueBytes);
  const keys = Array.from({ length: transactions }, (_none, index) => `k${index}`);
  switch (store) {
    case 'memcached':
      return wire(keys.map((key) => `set ${key} 0 0 ${valueBytes}\r\n${value}\r\ndelete ${key}\r\n`), 'STORED\r\nDELETED\r\n');
    case 'redis SET+DEL':
      return wire(keys.map((key) => resp('SET', key, value) + resp('DEL', key)), '+OK\r\n:1\r\n');
    case 'redis list':
      return wire(keys.map(() => resp('RPUSH', 'q', value) + resp('LPOP', 'q')), `:1\r\n$${valueBytes}\r\n${value}\r\n`);
  }
}

function wire(requests: readonly string[], reply: string): Wire {
  return { batch: Buffer.from(requests.join(''), 'latin1'), reply: Buffer.from(reply, 'latin1') };
}

function resp(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}
