/** What it cost to bring mirrors level again, as it is counted. */
import type { RepairFigures } from '../../observability/figures.js';

export type RepairCounters = { -readonly [Name in keyof RepairFigures]: number };
