/**
 * The 250 after both acknowledgements (G1), judged from outside: a recording proxy stands on the links to
 * both stores and holds back what one of them says. Real processes; the client, the proxies and so all
 * times are in this process.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';

import { MessagePacker } from '../../src/platform/node/packer.js';
import { ackSequence, decodeAck } from '../../src/protocol/messages/ack.js';
import { InvalidMessage } from '../../src/protocol/invalid.js';
import { ACK } from '../../src/protocol/message-types.js';
import { sendRaw } from '../thirdparty/support.js';
import { startCluster } from './cluster.js';
import { FaultProxy, proxyNowMs, type FrameRecord } from './fault-proxy.js';

const MESSAGES = 20;
/** Far above what a 250 takes otherwise, so that one that did not wait is caught each time. */
const HELD_BACK_MS = 60;

/** A recording proxy, and the frames that carried bodies, with the bodies as text. */
interface Recorder {
  readonly proxy: FaultProxy;
  readonly carried: { readonly record: FrameRecord; readonly text: string }[];
}

async function startRecorder(): Promise<Recorder> {
  const carried: { record: FrameRecord; text: string }[] = [];
  const proxy = await FaultProxy.start({
    targetHost: '127.0.0.1',
    targetPort: 0, // known when the cluster has chosen its ports
    onBodies: (record, bodies) => {
      if (record.direction === 'up' && bodies.length > 0) carried.push({ record, text: Buffer.from(bodies).toString('latin1') });
    },
  });
  return { proxy, carried };
}

/** When the acknowledgement of the frame that carried `text` left the proxy. */
function acknowledgedMs(recorder: Recorder, text: string): number {
  const frame = recorder.carried.find((each) => each.text.includes(text))?.record;
  assert.ok(frame !== undefined, `no frame carried ${text}`);
  const packer = new MessagePacker();
  const acknowledgement = recorder.proxy.records.find((record) => {
    if (record.direction !== 'down' || record.type !== ACK || record.connection !== frame.connection) return false;
    const ack = decodeAck(packer, record.control);
    return !(ack instanceof InvalidMessage) && ackSequence(ack) >= frame.sequence;
  });
  assert.ok(acknowledgement !== undefined, `${text} was never acknowledged`);
  return acknowledgement.passedMs;
}

/** The codes of all replies to a client that is greeted, sends a whole dialog, and ends its side behind it, as nc does at the end of its input. */
async function halfClosed(port: number): Promise<string[]> {
  const socket = connect(port, '127.0.0.1');
  let heard = String((await once(socket, 'data'))[0]);
  socket.end('EHLO client.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<b@a.example>\r\nDATA\r\nSubject: half-closed\r\n\r\n.\r\n');
  for await (const bytes of socket) heard += String(bytes);
  return heard.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3));
}

async function judge(slow: number): Promise<void> {
  const recorders = [await startRecorder(), await startRecorder()];
  const cluster = await startCluster({
    mapStorePort: (port, store, path) => {
      const proxy = recorders[store]?.proxy;
      if (path !== 'A' || proxy === undefined) return port;
      proxy.retarget(port);
      return proxy.port;
    },
  });
  try {
    // Creates the queue at both stores.
    assert.match(await sendRaw(cluster.smtpPort, Buffer.from('Subject: first\r\n\r\n'), 'b@a.example'), /^250 /);
    await cluster.inSync(1);
    recorders[slow]?.proxy.delay('down', HELD_BACK_MS);
    for (let number = 0; number < MESSAGES; number++) {
      const marker = `marker-${number}-of-${MESSAGES}`;
      const sentMs = proxyNowMs();
      const reply = await sendRaw(cluster.smtpPort, Buffer.from(`Subject: ${marker}\r\n\r\nbody\r\n`), 'b@a.example');
      const repliedMs = proxyNowMs();
      assert.match(reply, /^250 /);
      assert.ok(repliedMs - sentMs >= HELD_BACK_MS, 'the proxy held nothing back, so nothing was judged');
      for (const [store, recorder] of recorders.entries()) {
        const passedMs = acknowledgedMs(recorder, marker);
        assert.ok(passedMs <= repliedMs, `message ${number}: 250 came ${passedMs - repliedMs} ms before the acknowledgement of store ${store}`);
      }
    }
    assert.deepEqual(await halfClosed(cluster.smtpPort), ['220', '250', '250', '250', '354', '250'], 'who has ended his side is answered as late, not less');
    await cluster.sinkHas(MESSAGES + 2);
  } finally {
    await cluster.stop();
    for (const recorder of recorders) await recorder.proxy.close();
  }
}

describe('the 250 comes after the acknowledgements of both stores', () => {
  test('when the first store answers late', () => judge(0));
  test('when the second store answers late', () => judge(1));
});
