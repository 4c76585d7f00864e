/**
 * The store's side of the handshake, up to the moment when the gateway has proved itself.
 *
 *   HELLO ─► CHALLENGE (proof of ours, for this gateway's secret) ─► PROOF ─► account
 *
 * A gateway that this store does not know gets the same answers after the same work and is refused only at
 * PROOF, so that an asker can't tell which names exist. docs/PROTOCOL.md "Handshake".
 */

import type { Packer, Secrets } from '../../platform/ports.js';
import { NONCE_BYTES, isGatewayProof, storeProof, transcript } from '../../protocol/handshake.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import { encodeChallenge } from '../../protocol/messages/challenge.js';
import type { Hello } from '../../protocol/messages/hello.js';
import { decodeHello } from '../../protocol/messages/hello.js';
import { decodeProof } from '../../protocol/messages/proof.js';
import { CLOSE_DENIED, CLOSE_MALFORMED, CLOSE_VERSION } from '../../protocol/reasons.js';
import { chooseVersion, versionsSpoken } from '../../protocol/versions.js';
import type { GatewayAccount } from './accounts.js';

/** Why the handshake failed. */
export interface HandshakeFailure {
  readonly reason: number;
  readonly text: string;
}

export interface HandshakeOptions {
  readonly storeId: string;
  readonly bootId: Uint8Array;
}

export interface HandshakePorts {
  readonly packer: Packer;
  readonly secrets: Secrets;
  /** Undefined: no gateway of this name is let in. */
  readonly secretOf: (id: string) => Uint8Array | undefined;
  /** Once it has proved that secret; undefined: there is no room for another one. */
  readonly accountOf: (id: string) => GatewayAccount | undefined;
}

export class HandshakeMachine {
  readonly #options: HandshakeOptions;
  readonly #ports: HandshakePorts;
  #hello: Hello | undefined;
  #version = 0;
  #signed: Uint8Array = new Uint8Array(0);
  #secret: Uint8Array = new Uint8Array(0);
  #isKnown = false;

  constructor(options: HandshakeOptions, ports: HandshakePorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get hello(): Hello | undefined {
    return this.#hello;
  }

  /** Of the protocol, as settled with the gateway; 0 before HELLO. */
  get version(): number {
    return this.#version;
  }

  /** HELLO named a gateway that has a secret here. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The control part of CHALLENGE, or why not. */
  onHello(control: Uint8Array): Uint8Array | HandshakeFailure {
    const { packer, secrets, secretOf } = this.#ports;
    const hello = decodeHello(packer, control);
    if (hello instanceof InvalidMessage) return { reason: CLOSE_MALFORMED, text: `HELLO: ${hello.rule}` };
    const version = chooseVersion(hello.versionMin, hello.versionMax);
    if (version === 0) {
      const spoken = `${String(hello.versionMin)} to ${String(hello.versionMax)}`;
      const text = `the gateway speaks versions ${spoken} of the protocol, this store ${versionsSpoken()}: `
        + 'upgrade one of them';
      return { reason: CLOSE_VERSION, text };
    }
    this.#version = version;
    // Views of the frame would be overwritten before PROOF comes.
    const [incarnationNonce, nonce] = [Uint8Array.from(hello.incarnationNonce), Uint8Array.from(hello.nonce)];
    this.#hello = { ...hello, incarnationNonce, nonce };
    const secret = secretOf(hello.gatewayId);
    this.#isKnown = secret !== undefined;
    this.#secret = secret ?? secrets.randomBytes(32);
    const { storeId, bootId } = this.#options;
    const greeting = { version, storeId, bootId, nonce: secrets.randomBytes(NONCE_BYTES) };
    this.#signed = transcript(packer, control, greeting);
    return encodeChallenge(packer, { ...greeting, proof: storeProof(secrets, this.#secret, this.#signed) });
  }

  /** The account that proved itself, or why not. */
  onProof(control: Uint8Array): GatewayAccount | HandshakeFailure {
    const { packer, secrets, secretOf, accountOf } = this.#ports;
    const message = decodeProof(packer, control);
    if (message instanceof InvalidMessage) return { reason: CLOSE_MALFORMED, text: `PROOF: ${message.rule}` };
    const { gatewayId = '' } = this.#hello ?? {};
    // As they are by now: a reload may have come since HELLO.
    const secret = secretOf(gatewayId);
    const isRight = isGatewayProof(secrets, secret ?? this.#secret, this.#signed, message.proof);
    if (!this.#isKnown || secret === undefined || !isRight) {
      return { reason: CLOSE_DENIED, text: 'unknown gateway or wrong secret' };
    }
    const account = accountOf(gatewayId);
    const text = 'this store knows as many gateways of the group as it can: restart it';
    return account ?? { reason: CLOSE_DENIED, text };
  }
}
