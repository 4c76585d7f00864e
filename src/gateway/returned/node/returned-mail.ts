/** What a gateway has for mail that comes back, for all its listeners: its addresses, and who reads it. */
import type { ReturnAddresses } from '../../../base/return-addresses.js';
import type { FeedbackOptions } from '../came-back.js';
import { ReportLine } from '../report-line.js';
import type { ReportLinePorts } from '../report-line.js';
import { ReturnPaths } from '../return-paths.js';
import { ReportThread } from './report-thread.js';

export interface ReturnedMail {
  readonly paths: ReturnPaths;
  readonly reading: ReportLine;
}

/** Undefined where nothing comes back: then nobody looks for it, and there is no thread. */
export function returnedMail(
  addresses: ReadonlyMap<string, ReturnAddresses>, feedback: FeedbackOptions | undefined,
  ports: Pick<ReportLinePorts, 'memory' | 'record'>,
): ReturnedMail | undefined {
  if (addresses.size === 0 && feedback === undefined) return undefined;
  const paths = new ReturnPaths(addresses.values(), feedback);
  return { paths, reading: new ReportLine({ ...ports, paths, reader: new ReportThread() }) };
}
