import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { SystemSecrets } from '../../../src/platform/node/secrets.js';
import * as handshake from '../../../src/protocol/handshake.js';
import { encodeHello } from '../../../src/protocol/messages/hello.js';
import { run } from './samples.js';

const packer = new MessagePacker();
const secrets = new SystemSecrets();
const secret = Buffer.from('correct horse battery staple');
const hello = encodeHello(packer, {
  versionMin: 1, versionMax: 1, gatewayId: 'gw-1', incarnation: 1_750_000_000_123, incarnationNonce: run(0x10, 8),
  path: 'A', generation: 3, nonce: run(0x20, 16), flags: 1,
});
const greeting: handshake.StoreGreeting = { version: 1, storeId: 'store-a', bootId: run(0x30, 16), nonce: run(0x40, 16) };
const signed = handshake.transcript(packer, hello, greeting);

describe('handshake proofs', () => {
  test('have the pinned values, computed elsewhere from the document', () => {
    assert.equal(Buffer.from(handshake.storeProof(secrets, secret, signed)).toString('hex'), '571c5158dfb28d491780f5d135dc8c640b70b3325055bd22b66389d3855216eb');
    assert.equal(Buffer.from(handshake.gatewayProof(secrets, secret, signed)).toString('hex'), 'a9defd873a2dac924a5e06e1ce0f28408085fcf3c6076626fa2d0e86e6b1cf77');
  });

  test('convince only the side they are for, under the same secret', () => {
    const storeProof = handshake.storeProof(secrets, secret, signed);
    const gatewayProof = handshake.gatewayProof(secrets, secret, signed);
    assert.ok(handshake.isStoreProof(secrets, secret, signed, storeProof));
    assert.ok(handshake.isGatewayProof(secrets, secret, signed, gatewayProof));
    assert.ok(!handshake.isGatewayProof(secrets, secret, signed, storeProof), 'a reflected proof');
    assert.ok(!handshake.isStoreProof(secrets, secret, signed, gatewayProof));
    assert.ok(!handshake.isStoreProof(secrets, Buffer.from('another'), signed, storeProof));
    assert.ok(!handshake.isStoreProof(secrets, secret, signed, storeProof.subarray(1)));
  });

  test('cover everything that both sides said', () => {
    const right = handshake.storeProof(secrets, secret, signed);
    for (const changed of [
      { ...greeting, version: 2 }, { ...greeting, storeId: 'store-b' },
      { ...greeting, bootId: run(0x31, 16) }, { ...greeting, nonce: run(0x41, 16) },
    ]) {
      assert.ok(!handshake.isStoreProof(secrets, secret, handshake.transcript(packer, hello, changed), right));
    }
    for (let at = 0; at < hello.length; at++) {
      const other = Uint8Array.from(hello);
      other[at] = (other[at] ?? 0) ^ 1;
      assert.ok(!handshake.isStoreProof(secrets, secret, handshake.transcript(packer, other, greeting), right));
    }
  });
});
