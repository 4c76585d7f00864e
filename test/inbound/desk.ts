/**
 * Reception without a gateway behind it: a default for each option and port of a desk, any of which a test lays over.
 * What it submits goes to a MemoryReception. With sockets: dialog/harness.ts; in virtual time: attacks/virtual-desk.ts.
 */
import { INBOUND_DEFAULTS } from '../default-options.js';
import { NONE_MADE } from '../../src/gateway/inbound/options.js';
import type { InboundMetrics, InboundOptions, InboundPorts } from '../../src/gateway/inbound/options.js';
import { Desk } from '../../src/gateway/inbound/session/desk.js';
import { ServerSession } from '../../src/gateway/inbound/session/session.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { latin1Text } from '../../src/platform/node/latin1.js';
import type { EventLog } from '../../src/platform/ports.js';
import type { MemoryConnection } from '../scenario/memory-connection.js';
import { DomainRouter, MemoryReception } from '../dialog/memory-reception.js';

/** Saturday, 21 November 2026. */
export const WALL_MS = 1_795_229_168_000;
export const quiet = (): void => undefined;
export const NO_LOG: EventLog = { debug: quiet, info: quiet, warn: quiet, error: quiet };
export const NO_METRICS: InboundMetrics = {
  connectionOpened: quiet, connectionClosed: quiet, connectionWaits: quiet, received: quiet, rejected: quiet,
  authEnded: quiet, handshakeEnded: quiet, certificateStale: quiet, resultsRenamed: quiet,
};
/** Whoever comes is greeted at once. */
export const TEST_OPTIONS: InboundOptions = { ...INBOUND_DEFAULTS, hostName: 'mx.test', offersTls: true, greetingDelayMs: 0 };

export type RefusalRecord = Parameters<InboundPorts['mailLog']['rejected']>[0];

export interface TestPorts {
  readonly reception: MemoryReception;
  /** "stage reason" of each refusal, in order. */
  readonly rejections: string[];
  /** The same, as the mail log has them. */
  readonly refused: RefusalRecord[];
  readonly ports: InboundPorts;
}

export function testPorts(over: Partial<InboundPorts> = {}): TestPorts {
  const reception = new MemoryReception();
  const rejections: string[] = [];
  const refused: RefusalRecord[] = [];
  const ports: InboundPorts = {
    reception,
    router: new DomainRouter(),
    clock: { nowMs: () => performance.now(), wallMs: () => WALL_MS },
    authenticator: undefined,
    toAscii,
    latin1Text,
    recipients: undefined,
    rates: undefined,
    blocklists: undefined,
    hooks: undefined,
    made: NONE_MADE,
    nextTurn: (run) => { setImmediate(run); },
    log: NO_LOG,
    mailLog: {
      wantsMessageId: true, received: quiet,
      rejected: (refusal) => {
        refused.push(refusal);
        rejections.push(`${refusal.stage} ${refusal.reason}`);
      },
    },
    metrics: NO_METRICS,
    ...over,
  };
  return { reception, rejections, refused, ports };
}

export interface TestDesk extends Omit<TestPorts, 'ports'> {
  readonly desk: Desk;
}

export function testDesk(options: Partial<InboundOptions> = {}, over: Partial<InboundPorts> = {}): TestDesk {
  const { reception, rejections, refused, ports } = testPorts(over);
  return { reception, rejections, refused, desk: new Desk({ ...TEST_OPTIONS, ...options }, ports) };
}

/** The session of a connection that stands. */
export function openSession(desk: Desk, connection: MemoryConnection): ServerSession {
  const session = new ServerSession(desk, connection);
  connection.attach(session);
  session.onOpen();
  return session;
}
