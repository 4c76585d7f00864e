/**
 * Which configuration a gateway or a store runs by, and what came of the last attempt to give it another one,
 * for status and metrics.
 */
import type { ConfigurationAnswer } from '../admin-api/pages.js';
import { wholeSeconds } from '../base/units.js';
import type { Clock } from '../platform/ports.js';
import type { Series } from './series.js';

export class ConfigurationInForce {
  readonly #clock: Pick<Clock, 'wallMs'>;
  #hash: string;
  #sinceWallMs: number;
  #readWallMs: number;
  #refused: { readonly why: string; readonly wallMs: number } | undefined;

  constructor(hash: string, clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock;
    this.#hash = hash;
    this.#sinceWallMs = clock.wallMs();
    this.#readWallMs = this.#sinceWallMs;
  }

  /** The file was read again and is good, whether or not something in it has changed. */
  renewed(hash: string): void {
    this.#readWallMs = this.#clock.wallMs();
    if (hash !== this.#hash) this.#sinceWallMs = this.#readWallMs;
    this.#hash = hash;
    this.#refused = undefined;
  }

  refused(why: string): void {
    this.#refused = { why, wallMs: this.#clock.wallMs() };
  }

  answer(): ConfigurationAnswer {
    const refused = this.#refused;
    return {
      hash: this.#hash,
      since: wholeSeconds(this.#sinceWallMs), read: wholeSeconds(this.#readWallMs),
      refused: refused?.why ?? '', refused_at: refused === undefined ? null : wholeSeconds(refused.wallMs),
    };
  }
}

/** `answer`: undefined where there is no file. */
export function exportConfiguration(series: Series, answer: () => ConfigurationAnswer | undefined): void {
  series.gauge(
    'config_last_reload_successful', '1 when the configuration was taken when it was read last',
    () => Number((answer()?.refused ?? '') === ''),
  );
  series.gauge(
    'config_last_reload_success_timestamp_seconds', 'When a configuration was read last that was taken',
    () => answer()?.read ?? 0,
  );
}
