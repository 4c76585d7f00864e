/** Which configuration a gateway runs by, and what came of the last attempt to give it another one. */
import type { ConfigurationAnswer } from '../../admin-api/gateway-answers.js';
import { wholeSeconds } from '../../base/units.js';
import type { Clock } from '../../platform/ports.js';
import type { ConfigurationName } from './gateway-options.js';

export class ConfigurationInForce {
  readonly #clock: Pick<Clock, 'wallMs'>;
  #name: ConfigurationName;
  #sinceWallMs: number;
  #readWallMs: number;
  #refused: { readonly why: string; readonly wallMs: number } | undefined;

  constructor(name: ConfigurationName, clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock;
    this.#name = name;
    this.#sinceWallMs = clock.wallMs();
    this.#readWallMs = this.#sinceWallMs;
  }

  /** The file was read again and is good, whether or not something in it has changed. */
  renewed(name: ConfigurationName): void {
    this.#readWallMs = this.#clock.wallMs();
    if (name.hash !== this.#name.hash) this.#sinceWallMs = this.#readWallMs;
    this.#name = name;
    this.#refused = undefined;
  }

  refused(why: string): void {
    this.#refused = { why, wallMs: this.#clock.wallMs() };
  }

  answer(): ConfigurationAnswer {
    const refused = this.#refused;
    return {
      hash: this.#name.hash, routes_hash: this.#name.routesHash,
      since: wholeSeconds(this.#sinceWallMs), read: wholeSeconds(this.#readWallMs),
      refused: refused?.why ?? '', refused_at: refused === undefined ? null : wholeSeconds(refused.wallMs),
    };
  }
}
