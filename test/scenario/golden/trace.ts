/**
 * A golden trace: what the gateway of a release said to a store and what the store answered, with the times,
 * kept as a file for the release after it. Written by record.ts, replayed by ../golden-trace.test.ts.
 *
 *   line 1   what the store was: TraceHeader
 *   others   {at, connection, is, hex}     is: 'open', 'in' (to the store), 'out' (from it), 'end'
 */
import { readFileSync } from 'node:fs';
import { crc32 } from '../../../src/platform/node/checksum.js';
import { FRAME_BYTES_MAX } from '../../../src/protocol/frame.js';
import { FrameReader } from '../../../src/protocol/frame-reader.js';

export interface TraceHeader {
  /** The release that spoke. */
  readonly release: string;
  readonly protocol: number;
  readonly storeId: string;
  /** In hex. */
  readonly bootId: string;
  readonly gatewayId: string;
  /** The shared secret, in hex: the proofs are replayed too. */
  readonly secret: string;
  readonly memoryLimitBytes: number;
  readonly windowBytes: number;
  readonly leaseMs: number;
}

export interface TraceEvent {
  readonly at: number;
  /** Connections of the store by number, in the order in which they came. */
  readonly connection: number;
  readonly is: 'open' | 'in' | 'out' | 'end';
  readonly hex?: string;
}

export interface Trace {
  readonly header: TraceHeader;
  readonly events: readonly TraceEvent[];
}

/** One frame of a trace. */
export interface TracedFrame {
  readonly type: number;
  readonly sequence: number;
  readonly control: Uint8Array;
  readonly bodies: Uint8Array;
}

export function readTrace(file: string): Trace {
  const [first, ...rest] = readFileSync(file, 'utf8').trimEnd().split('\n');
  return { header: JSON.parse(first ?? '') as TraceHeader, events: rest.map((line) => JSON.parse(line) as TraceEvent) };
}

/** Cuts what one side said on one connection into frames; throws at the first that is none. */
export function framesOf(pieces: readonly Uint8Array[]): TracedFrame[] {
  const frames: TracedFrame[] = [];
  const reader = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32 });
  for (const piece of pieces) {
    reader.push(piece, {
      onFrame: (type, sequence, control, bodies) => { frames.push({ type, sequence, control: control.slice(), bodies: bodies.slice() }); },
      onInvalid: (rule) => { throw new Error(`the trace has a frame that breaks a rule: ${rule}`); },
    });
  }
  return frames;
}
