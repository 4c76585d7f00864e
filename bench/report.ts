/**
 * The report of `bench all` in Markdown: what was measured where, the goals and whether they are met, and a
 * table a part. Pure: results in, text out. Sections of the parts are in report-sections.ts.
 */
import { table } from './format.js';
import { goalsOf, type Goal } from './goals.js';
import type { PartResult } from './options.js';
import { plotsOf } from './report-plots.js';
import { sectionsOf } from './report-sections.js';
import type { Results } from './results.js';

/** `plotFolder`: where the plots lie, as seen from the report; with a slash at its end. */
export function reportOf(results: Results, plotFolder = ''): string {
  const parts = Object.values(results) as PartResult<unknown>[];
  const images = plotsOf(results).map(([name, plot]) => `![${plot.title}](${plotFolder}${name}.svg)\n`);
  return [...headOf(parts), '### Goals\n', goalsTable(goalsOf(results)), ...sectionsOf(results), '### Plots\n', ...images].join('\n');
}

function headOf(parts: readonly PartResult<unknown>[]): string[] {
  const [first] = parts;
  if (first === undefined) return ['Nothing was measured.\n'];
  const { machine } = first;
  const missing = parts.flatMap((part) => part.missing ?? []);
  const commits = new Set(parts.map((part) => part.machine.commit));
  return [
    `Measured on ${machine.processors} × ${machine.processor}, ${Math.round(machine.memoryBytes / 2 ** 30)} GiB, ${machine.system}, Node ${machine.node}, ` +
      `commit ${[...commits].join('; ')}, ${machine.at.slice(0, 16).replace('T', ' ')} UTC. Client, gateway, both stores, sink and peers share these processors. ` +
      'Figures are medians, with the range in parentheses where there were several rounds.\n',
    ...(parts.some((part) => part.quick) ? ['**Quick run: one round of few messages; not for comparisons.**\n'] : []),
    ...(missing.length === 0 ? [] : [`Not installed, so not measured: ${[...new Set(missing)].join(', ')}.\n`]),
    `Parts, and the load of the machine in the minute before each: ${parts.map((part) => `${part.part} ${part.seconds} s (${part.loadBefore.toFixed(1)})`).join(', ')}. Parts leave load behind for the next.\n`,
  ];
}

export function goalsTable(goals: readonly Goal[]): string {
  const verdict = (goal: Goal): string => {
    if (goal.isMet === undefined) return '-';
    if (goal.isPartial === true) return goal.isMet ? 'met with less' : '**not met**, even with less';
    if (goal.isMet) return 'met';
    return goal.stretch === true ? 'not met' : '**not met**';
  };
  return table(['subject', 'goal', 'verdict', 'measured'], goals.map((goal) => [goal.subject, goal.stretch === true ? `stretch: ${goal.goal}` : goal.goal, verdict(goal), goal.measured]));
}
