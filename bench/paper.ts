/**
 * The figures of the paper whose experiments the benches repeat (High-Throughput Mail Gateways, sections
 * IV.B to IV.D), as far as its text states them. Machines of 2012, gigabit Ethernet between them.
 */

/** Section IV.B, figure 4: store and delete of one message, one connection, by message size in KB. */
export const PAPER_KVS: Readonly<Record<string, number>> = { '0.4': 200_000, '1': 100_000 };
/** "Twice the throughput of memcached" at 0.4 KB, "1.4 times" at 1 KB. */
export const PAPER_MEMCACHED: Readonly<Record<string, number>> = { '0.4': 100_000, '1': Math.round(100_000 / 1.4) };

/** Section IV.C, figure 5: 70% 1 KB, 30% 10 KB, two stores. The conventional method keeps mail on RAID disks. */
export const PAPER_GATEWAY = { messagesPerSecond: 3600, responseMs: 14 };
export const PAPER_CONVENTIONAL = { messagesPerSecond: Math.round(3600 / 4.4), responseMs: 14 * 5 };

/** Section IV.D, figure 6: 500,000 messages of 1 KB, seconds by messages in a block. */
export const PAPER_RECOVERY: Readonly<Record<string, number>> = { '1': 5.9 * 14, '1000': 5.9 };
export const PAPER_RECOVERY_MESSAGES = 500_000;
