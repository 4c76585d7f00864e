import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { isGatewayProof } from '../../../../../src/protocol/handshake.js';
import { isInvalid } from '../../../../../src/protocol/invalid.js';
import { decodeProof } from '../../../../../src/protocol/messages/proof.js';
import * as reasons from '../../../../../src/protocol/reasons.js';
import { HELLO_ACTIVE } from '../../../../../src/protocol/messages/hello.js';
import { LinkBench, PORT_A, packer, secrets } from './scripted-store.js';

describe('handshake of a path', () => {
  test('connects both paths at the first tick, A asking to be active, generations rising', () => {
    const bench = new LinkBench();
    bench.link.start();
    assert.equal(bench.network.attempts.length, 0);
    bench.link.tick(bench.nowMs);
    assert.equal(bench.states(), 'A CONNECTING, B CONNECTING');
    bench.a.handlers.onOpen();
    bench.b.handlers.onOpen();
    const helloA = bench.a.hello();
    const helloB = bench.b.hello();
    assert.equal(helloA.flags, HELLO_ACTIVE);
    assert.equal(helloB.flags, 0);
    assert.deepEqual([helloA.path, helloB.path], ['A', 'B']);
    assert.ok(helloB.generation > helloA.generation);
    assert.equal(helloA.gatewayId, 'gateway-1');
    assert.equal(helloA.incarnation, 7);
    assert.notDeepEqual(helloA.nonce, helloB.nonce);
  });

  test('proves itself only to a store that proved itself, then is up', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    assert.deepEqual(bench.a.names(), ['HELLO']);
    bench.a.challenge();
    assert.deepEqual(bench.a.names(), ['HELLO', 'PROOF']);
    assert.equal(bench.link.isUp, false);
    bench.a.welcome({ credit: 5_000 });
    assert.equal(bench.link.isUp, true);
    assert.equal(bench.link.trouble, '');
    assert.equal(bench.link.credit, 5_000);
    assert.equal(bench.link.bootId, '01'.repeat(16));
    assert.deepEqual(bench.told, ['up']);
    bench.b.accept();
    assert.equal(bench.states(), 'A RUN, B READY');
    assert.deepEqual(bench.told, ['up'], 'the standby is no news for the mirror');
  });

  test('a wrong proof of the store gets DENIED and no proof of ours', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    bench.a.challenge({ secret: new Uint8Array(32).fill(9) });
    assert.deepEqual(bench.a.names(), ['HELLO', 'CLOSE']);
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_DENIED);
    assert.ok(bench.a.isEnded);
    assert.equal(bench.states(), 'A NG, B CONNECTING');
    assert.equal(bench.log.count('does not know this gateway, or not by this secret: compare id and secret with gateways: of the store'), 1);
    assert.equal(bench.a.closeSent().text, 'the secrets differ: compare secret_file here and there', 'the log of the store says so of a gateway that it knows');
    assert.match(bench.link.trouble, /not by this secret/, 'status says why it is not up');
    bench.pass(1_500);
    assert.equal(bench.network.count(PORT_A), 1, 'asked again at the longest pause only');
    bench.pass(1_000);
    assert.equal(bench.network.count(PORT_A), 2);
  });

  test('a store may prove any secret that is shared at that moment, and gets the proof of the same one', () => {
    const [before, next] = [8, 9].map((byte) => new Uint8Array(32).fill(byte));
    assert.ok(before !== undefined && next !== undefined);
    const bench = new LinkBench();
    bench.sharedSecrets = [before, next];
    bench.start();
    bench.a.handlers.onOpen();
    const signed = bench.a.challenge({ secret: next });
    const proof = decodeProof(packer, bench.a.last().control);
    assert.ok(!isInvalid(proof) && isGatewayProof(secrets, next, signed, proof.proof));
    bench.a.welcome();
    bench.sharedSecrets = [before];
    bench.pass(1_000);
    assert.equal(bench.link.isUp, true, 'what stands goes on');
    bench.b.handlers.onOpen();
    bench.b.challenge({ secret: next });
    assert.equal(bench.b.closeSent().reason, reasons.CLOSE_DENIED, 'what comes anew needs one that is shared now');
  });

  test('another store than the configured one is not taken', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    bench.a.challenge({ storeId: 'store-b' });
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_DENIED);
    assert.equal(bench.log.count('belongs to store store-b'), 1);
  });

  test('a store of another version gets VERSION', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    bench.a.challenge({ version: 9 });
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_VERSION);
    assert.equal(bench.log.count('the store speaks version 9 of the protocol, this gateway version 3'), 1);
  });

  test('says which versions it speaks, and goes by the one that the store chose', () => {
    for (const version of [3]) {
      const bench = new LinkBench();
      bench.start();
      bench.a.handlers.onOpen();
      assert.deepEqual([bench.a.hello().versionMin, bench.a.hello().versionMax], [3, 3]);
      assert.equal(bench.link.version, 0);
      bench.a.challenge({ version });
      bench.a.welcome();
      assert.equal(bench.link.isUp, true);
      assert.equal(bench.link.version, version);
    }
  });

  test('a store that does not make it active is left, and asked with a higher generation', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    const before = bench.a.hello().generation;
    bench.a.challenge();
    bench.a.welcome({ active: false });
    assert.equal(bench.link.isUp, false);
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_STANDBY);
    bench.pass(200);
    bench.a.handlers.onOpen();
    assert.ok(bench.a.hello().generation > before);
  });

  test('messages out of turn are malformed in every state', () => {
    for (const step of ['GREETING', 'PROVING', 'READY']) {
      const bench = new LinkBench();
      bench.start();
      bench.b.handlers.onOpen();
      if (step !== 'GREETING') bench.b.challenge();
      if (step === 'READY') bench.b.welcome();
      bench.b.ack(1, 0);
      assert.equal(bench.b.closeSent().reason, reasons.CLOSE_MALFORMED, step);
      assert.equal(bench.b.closeSent().text, `ACK in ${step}`);
      assert.ok(bench.b.isEnded);
    }
  });
});
