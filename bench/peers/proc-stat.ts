/**
 * What /proc/PID/stat (proc(5)) says of CPU time, and its sum over a process and all that descend from it.
 * Pure.
 */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  /** User and system time, in clock ticks: its own, and that of children it has waited for, with theirs. */
  readonly ownTicks: number;
  readonly waitedTicks: number;
}

export function parseStat(text: string): ProcessStat {
  // The name in parentheses may hold spaces and parentheses: fields count from behind the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ').map(Number);
  const field = (number: number): number => fields[number - 3] ?? 0;
  return { pid: Number(text.slice(0, text.indexOf(' '))), parent: field(4), ownTicks: field(14) + field(15), waitedTicks: field(16) + field(17) };
}

export function ticksOfTree(stats: readonly ProcessStat[], root: number): number {
  const among = new Set([root]);
  // Parents may stand behind their children in the list.
  for (let grown = true; grown; ) {
    grown = false;
    for (const { pid, parent } of stats) {
      if (among.has(pid) || !among.has(parent)) continue;
      among.add(pid);
      grown = true;
    }
  }
  return stats.filter(({ pid }) => among.has(pid)).reduce((sum, stat) => sum + stat.ownTicks + stat.waitedTicks, 0);
}
