/**
 * The gateway's side of one handshake: what it says in HELLO, how it judges CHALLENGE, what it proves
 * (docs/PROTOCOL.md, "Handshake"). Owns the nonce and the transcript of one connection.
 *
 * What is not here: when each is sent (path-connection.ts); the proofs themselves (protocol/handshake.ts).
 */
import { NONCE_BYTES, gatewayProof, isStoreProof, transcript } from '../../../protocol/handshake.js';
import { isInvalid } from '../../../protocol/invalid.js';
import { decodeChallenge } from '../../../protocol/messages/challenge.js';
import { HELLO_ACTIVE, encodeHello } from '../../../protocol/messages/hello.js';
import { encodeProof } from '../../../protocol/messages/proof.js';
import { CLOSE_DENIED, CLOSE_MALFORMED, CLOSE_VERSION } from '../../../protocol/reasons.js';
import {
  PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, chooseVersion, versionsSpoken,
} from '../../../protocol/versions.js';
import type { LinkOptions, LinkPorts, PathName } from './link-options.js';

export interface HandshakeWish {
  readonly path: PathName;
  readonly generation: number;
  readonly wantsActive: boolean;
}

/** Why a store was not taken: the reason, one line for the log, and what the store is told. */
export interface StoreRejection {
  readonly reason: number;
  readonly text: string;
  readonly told: string;
  /** It goes by none of our secrets. */
  readonly isOfSecret: boolean;
}

export class GatewayHandshake {
  /** Control part of HELLO. */
  readonly hello: Uint8Array;
  readonly #options: LinkOptions;
  readonly #ports: LinkPorts;
  #proof: Uint8Array = new Uint8Array(0);
  #bootId = '';
  #version = 0;
  #secret = 0;

  constructor(options: LinkOptions, ports: LinkPorts, wish: HandshakeWish) {
    this.#options = options;
    this.#ports = ports;
    const hello = encodeHello(ports.packer, {
      versionMin: PROTOCOL_VERSION_OLDEST,
      versionMax: PROTOCOL_VERSION,
      gatewayId: options.gatewayId,
      incarnation: options.incarnation,
      incarnationNonce: options.incarnationNonce,
      path: wish.path,
      generation: wish.generation,
      nonce: ports.secrets.randomBytes(NONCE_BYTES),
      flags: wish.wantsActive ? HELLO_ACTIVE : 0,
    });
    // Signed later as the bytes that went out: a packer may use its buffer again.
    this.hello = hello.slice();
  }

  /** Control part of PROOF; there after judge() found the store right. */
  get proof(): Uint8Array {
    return this.#proof;
  }

  /** Identity of the store's memory, in hex. */
  get bootId(): string {
    return this.#bootId;
  }

  /** Of the protocol, as the store chose it. */
  get version(): number {
    return this.#version;
  }

  /** Which of our secrets the store proved, counted from 1; 0: none. */
  get secret(): number {
    return this.#secret;
  }

  /** Undefined when the store is the configured one and knows a secret of ours. */
  judge(control: Uint8Array): StoreRejection | undefined {
    const { packer, secrets, sharedSecrets } = this.#ports;
    const challenge = decodeChallenge(packer, control);
    if (isInvalid(challenge)) return rejection(CLOSE_MALFORMED, challenge.rule);
    if (chooseVersion(challenge.version, challenge.version) === 0) {
      const text = `the store speaks version ${String(challenge.version)} of the protocol, `
        + `this gateway ${versionsSpoken()}: upgrade one of them`;
      return rejection(CLOSE_VERSION, text);
    }
    const signed = transcript(packer, this.hello, challenge);
    const ours = sharedSecrets();
    const position = ours.findIndex((one) => isStoreProof(secrets, one, signed, challenge.proof));
    const secret = ours[position];
    this.#secret = position + 1;
    if (secret === undefined) {
      const text = 'the store does not know this gateway, or not by this secret: compare id and secret with '
        + 'gateways: of the store, whose log says which';
      return {
        reason: CLOSE_DENIED, text, told: 'the secrets differ: compare secret_file here and there',
        isOfSecret: true,
      };
    }
    // After the proof: an impostor learns nothing about names.
    if (challenge.storeId !== this.#options.storeId) {
      const { storeId } = this.#options;
      const others = `this address belongs to store ${challenge.storeId}, not to ${storeId}`;
      return rejection(CLOSE_DENIED, `${others}: check the addresses`);
    }
    this.#bootId = hex(challenge.bootId);
    this.#version = challenge.version;
    this.#proof = encodeProof(packer, { proof: gatewayProof(secrets, secret, signed) });
    return undefined;
  }
}

function rejection(reason: number, text: string): StoreRejection {
  return { reason, text, told: text, isOfSecret: false };
}

function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}
