/**
 * Which of some secrets a store goes by at this moment. A link that stands says only what was proved when it
 * began, so this is a handshake of its own, which ends before this gateway proves anything: nothing changes
 * at the store, and nobody is told a word about a secret.
 */
import { CLOSE, CHALLENGE, HELLO, messageTypeName } from '../../protocol/message-types.js';
import { GatewayHandshake } from '../mirror/link/gateway-handshake.js';
import type { LinkOptions, LinkPorts } from '../mirror/link/link-options.js';
import { Outgoing } from '../mirror/link/outgoing.js';
import type { WireOwner } from '../mirror/link/wire.js';
import { Wire } from '../mirror/link/wire.js';

/** It stands behind a question of an operator. */
const ANSWER_MS = 2_000;

export interface ProbedSecret {
  /** Counted from 1; 0: none of them. */
  readonly secret: number;
  /** Why nobody knows; '' when it is known. */
  readonly why: string;
}

/** `ports.sharedSecrets`: those that are meant. By the first path alone. */
export function probeSecret(options: LinkOptions, ports: LinkPorts): Promise<ProbedSecret> {
  return new Promise((resolve) => {
    const bound = setTimeout(() => { probe.end('no answer'); }, ANSWER_MS);
    const probe = new SecretProbe(options, ports, (probed) => {
      clearTimeout(bound);
      resolve(probed);
    });
  });
}

class SecretProbe implements WireOwner {
  readonly #handshake: GatewayHandshake;
  readonly #outgoing: Outgoing;
  readonly #wire: Wire;
  readonly #onProbed: (probed: ProbedSecret) => void;

  constructor(options: LinkOptions, ports: LinkPorts, onProbed: (probed: ProbedSecret) => void) {
    this.#onProbed = onProbed;
    this.#handshake = new GatewayHandshake(options, ports, { path: 'A', generation: 0, wantsActive: false });
    this.#outgoing = new Outgoing(ports);
    this.#wire = new Wire(this, { frameBytesMax: options.frameBytesMax }, ports);
    this.#wire.connection = ports.transport.connect(options.pathA.host, options.pathA.port, this.#wire);
    this.#outgoing.reset(this.#wire.connection);
  }

  end(why: string, secret = 0): void {
    this.#wire.drop(false);
    this.#onProbed({ secret, why });
  }

  onWireOpen(): void {
    this.#outgoing.queueControl(HELLO, this.#handshake.hello);
    this.#outgoing.flush();
  }

  onWireData(): void {}

  onWireFrame(_wire: Wire, type: number, _sequence: number, control: Uint8Array): void {
    if (type === CHALLENGE) {
      const rejection = this.#handshake.judge(control);
      this.end(rejection === undefined || rejection.isOfSecret ? '' : rejection.text, this.#handshake.secret);
    } else {
      const what = `${messageTypeName(type)} instead of CHALLENGE`;
      this.end(type === CLOSE ? 'it ended the connection' : what);
    }
  }

  onWireInvalid(_wire: Wire, rule: string): void {
    this.end(rule);
  }

  onWireClosed(_wire: Wire, reason: string): void {
    this.end(reason);
  }
}
