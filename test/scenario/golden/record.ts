/**
 * Records the golden trace of this release: a deployment of two stores and a gateway goes through mail,
 * deferral, shared bodies, the loss of a store and of the gateway, and everything that reaches the first store
 * is kept. Run when a release is made: `node dist/test/scenario/golden/record.js RELEASE FILE`. See trace.ts.
 */
import { writeFileSync } from 'node:fs';
import type { Connection, ConnectionHandlers } from '../../../src/platform/transport.js';
import { PROTOCOL_VERSION } from '../../../src/protocol/versions.js';
import { World } from '../world.js';
import type { TraceEvent, TraceHeader } from './trace.js';

const STORE = 'store-a';
const MEMORY_BYTES = 64 * 1024 * 1024;
const WINDOW_BYTES = 8 * 1024 * 1024;
/** Of the gateway: short, so that a store that was cut off is filled anew. */
const RING_BYTES = 1024;

function record(release: string): string {
  const world = new World({ seed: 7, storeMemoryBytes: MEMORY_BYTES, windowBytes: WINDOW_BYTES, ringBytes: RING_BYTES });
  const events: TraceEvent[] = [];
  tap(world, events);
  for (const store of world.stores) store.start();
  world.gateway.start();
  world.until(() => world.gateway.core?.accepting === true);
  story(world);
  const header: TraceHeader = {
    release, protocol: PROTOCOL_VERSION, storeId: STORE, bootId: world.store('a').bootId, gatewayId: 'gw-1', secret: '07'.repeat(32),
    memoryLimitBytes: MEMORY_BYTES, windowBytes: WINDOW_BYTES, leaseMs: 10_000,
  };
  return [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** Two queues, one body in both, deferrals, a rejected recipient with its report, a refill, a recovery. */
function story(world: World): void {
  const deferred = new Set<string>();
  world.hops.script = (attempt) => {
    const key = `${String(attempt.messageId)} ${attempt.address}`;
    if (attempt.messageId % 5 === 0 && !deferred.has(key)) {
      deferred.add(key);
      return 'defer';
    }
    return attempt.messageId % 7 === 0 ? 'reject' : 'accept';
  };
  world.submitMany(12, ['q1'], { bytes: 60 });
  world.run(20);
  world.submitMany(4, ['q1', 'q2'], { bytes: 90 });
  world.run(300);
  world.submitMany(9, ['q2'], { bytes: 40, recipients: 2 });
  world.run(5);
  world.store('b').kill();
  world.run(400);
  world.submitMany(6, ['q1'], { bytes: 50 });
  world.run(100);
  world.store('b').start();
  world.run(1500);
  world.cut(world.store('a'));
  world.run(300);
  world.submitMany(5, ['q2'], { bytes: 70 });
  world.heal(world.store('a'));
  world.untilLevel();
  world.hops.script = () => 'unreachable';
  world.submitMany(20, ['q1', 'q2'], { bytes: 60 });
  world.run(50);
  world.store('b').kill();
  world.run(300);
  world.gateway.kill();
  world.run(200);
  world.gateway.start();
  world.run(3000);
  world.hops.script = () => 'accept';
  world.store('b').start();
  world.untilQuiet();
  recoverUneven(world);
}

/** The gateway dies while one store has more than the other, and takes its queue back from both. */
function recoverUneven(world: World): void {
  world.hops.script = () => 'unreachable';
  world.submitMany(6, ['q1'], { bytes: 60 });
  world.run(50);
  world.holdRequests(world.store('b'), true);
  world.submitMany(6, ['q1'], { bytes: 60 });
  world.run(20);
  world.gateway.kill();
  world.holdRequests(world.store('b'), false);
  world.run(200);
  world.gateway.start();
  world.run(3000);
  world.hops.script = () => 'accept';
  world.untilQuiet();
}

/** Keeps all that crosses the connections of the store. */
function tap(world: World, events: TraceEvent[]): void {
  const { network, scheduler } = world;
  const listen = network.listen.bind(network);
  let connections = 0;
  network.listen = (host, accept) => {
    listen(host, (connection) => {
      if (host !== STORE) return accept(connection);
      connections += 1;
      const number = connections;
      const keep = (is: TraceEvent['is'], bytes?: Uint8Array): void => {
        events.push({ at: Math.round(scheduler.nowMs * 1000) / 1000, connection: number, is, ...(bytes === undefined ? {} : { hex: Buffer.from(bytes).toString('hex') }) });
      };
      keep('open');
      return heard(accept(spoken(connection, keep)), keep);
    });
  };
}

type Keep = (is: TraceEvent['is'], bytes?: Uint8Array) => void;

function spoken(connection: Connection, keep: Keep): Connection {
  return {
    get remote() { return connection.remote; },
    get bufferedBytes() { return connection.bufferedBytes; },
    write: (chunks) => {
      for (const chunk of chunks) keep('out', chunk);
      connection.write(chunks);
    },
    pause: () => { connection.pause(); },
    resume: () => { connection.resume(); },
    end: () => { connection.end(); },
    destroy: () => { connection.destroy(); },
  };
}

function heard(handlers: ConnectionHandlers, keep: Keep): ConnectionHandlers {
  return {
    onOpen: () => { handlers.onOpen(); },
    onData: (bytes) => {
      keep('in', bytes);
      handlers.onData(bytes);
    },
    onDrain: () => { handlers.onDrain(); },
    onClose: (reason) => {
      keep('end');
      handlers.onClose(reason);
    },
  };
}

const [release, file] = process.argv.slice(2);
if (release === undefined || file === undefined) {
  process.stderr.write('usage: record.js RELEASE FILE\n');
  process.exitCode = 2;
} else {
  writeFileSync(file, record(release));
}
