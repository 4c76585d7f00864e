/**
 * What `send` can be asked to do and what it reports: plain data, filled by the command line, the bench
 * and tests. Behaviour is in load/run.ts.
 */

import type { Target } from './session.js';

/** A part of the mix: messages of this many bytes (marks and header included), with this weight. */
export interface MixPart {
  readonly bytes: number;
  readonly weight: number;
}

export interface SendOptions extends Target {
  /** How many messages. */
  readonly count: number;
  /** Connections at the same time. Default 10. */
  readonly connections?: number;
  /** Sends nothing before all connections are open. */
  readonly openFirst?: boolean;
  /** Sizes and their weights. Default: 1 KB. Unused when `eml` is given. */
  readonly mix?: readonly MixPart[];
  /** Contents of .eml files, taken in turn. Line ends are made CRLF. */
  readonly eml?: readonly Buffer[];
  /** Messages started a second at most. Default: no limit. */
  readonly rate?: number;
  /**
   * Connections take turns: the next message goes to the one that has waited longest, whoever was answered
   * last.
   */
  readonly inTurn?: boolean;
  /** Reverse-path. Default: load@client.example; '' is the null reverse-path. */
  readonly from?: string;
  /** Domains of the recipients, taken in turn; each is one queue. Default: sink.example. */
  readonly domains?: readonly string[];
  /** Local part of the recipients. Default: user. */
  readonly localPart?: string;
  /** Ends a connection after so many messages. Default: connections are kept. */
  readonly messagesPerConnection?: number;
  /** False sends one command at a time even if the server offers PIPELINING (RFC 2920). */
  readonly pipelining?: boolean;
  /**
   * False keeps the next envelope until the final dot is answered: some servers refuse what RFC 2920 3.1
   * allows.
   */
  readonly nextBehindDot?: boolean;
  /** Sends again, under the same id, what got a 4xx or no reply. */
  readonly resend?: boolean;
  /** Gives up when nothing was accepted for so long. Default 30 s. */
  readonly patienceMs?: number;
  /** Writes one line a try to this file (load/send-log.ts). */
  readonly log?: string;
  /** Name of this run in the marks: letters and digits. Default: random. */
  readonly run?: string;
  /**
   * Names each message in its envelope too (marks.ts), so that a sink knows attempts that ended before their
   * content.
   */
  readonly nameEnvelopes?: boolean;
  /** Chooses sizes from the mix. Default 1. */
  readonly seed?: number;
  /** Called about five times a second. */
  readonly onProgress?: (progress: SendProgress) => void;
  readonly signal?: AbortSignal;
}

export interface SendProgress {
  readonly count: number;
  readonly accepted: number;
  readonly failed: number;
  readonly elapsedMs: number;
  /** Of what was accepted since the call before; undefined when nothing was. */
  readonly responseMs: { readonly p50: number; readonly p99: number } | undefined;
}

export interface SendReport {
  readonly run: string;
  readonly count: number;
  /** Messages that got a 2xx to their final dot. */
  readonly accepted: number;
  /** Messages refused for good (5xx, or 4xx without `resend`). */
  readonly refused: number;
  /** Messages whose last try ended without a reply, and were not sent again. */
  readonly unanswered: number;
  /** Messages never finished: patience or signal ended the run. */
  readonly unfinished: number;
  /** Tries beyond the first of a message. */
  readonly resent: number;
  readonly elapsedMs: number;
  readonly acceptedPerSecond: number;
  /** Content bytes of accepted messages. */
  readonly acceptedBytes: number;
  /** From the final dot to its reply, for accepted messages. */
  readonly responseMs: ResponseTimes;
  /** How often each reply ended a try: '250', '451', …; 'none' = the connection ended first. */
  readonly replies: Readonly<Record<string, number>>;
  /** The first text seen of each reply but 2xx. */
  readonly samples: Readonly<Record<string, string>>;
  readonly connectionsOpened: number;
  readonly connectionErrors: Readonly<Record<string, number>>;
}

export interface ResponseTimes {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** '1KB:70,10KB:30', '500:1', '1KiB' → parts; a text that says what is wrong otherwise. */
export function parseMix(text: string): readonly MixPart[] | string {
  const parts: MixPart[] = [];
  for (const piece of text.split(',')) {
    const match = /^\s*(\d+(?:\.\d+)?)\s*(B|KB|MB|KiB|MiB)?\s*(?::\s*(\d+(?:\.\d+)?))?\s*$/i.exec(piece);
    if (match === null) return `mix: '${piece}' is not SIZE:WEIGHT, for example 1KB:70,10KB:30`;
    const bytes = Math.round(Number(match[1]) * (UNIT_BYTES[(match[2] ?? 'B').toLowerCase()] ?? 1));
    const weight = match[3] === undefined ? 1 : Number(match[3]);
    if (bytes > MIX_BYTES_MAX) return `mix: '${piece}' is larger than ${MIX_BYTES_MAX} bytes`;
    parts.push({ bytes, weight });
  }
  if (!parts.some((part) => part.weight > 0)) return `mix: '${text}' has no weight above 0`;
  return parts;
}

/** A template of each size is kept in memory. */
const MIX_BYTES_MAX = 64 * 1024 * 1024;
const UNIT_BYTES: Readonly<Record<string, number>> = { b: 1, kb: 1000, mb: 1e6, kib: 1024, mib: 1024 * 1024 };
