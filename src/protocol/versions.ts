/**
 * The versions of the protocol: which one a connection speaks (docs/PROTOCOL.md, "Versions").
 *
 *   version  release
 *   3        this one; nothing before it was released
 *
 * The gateway names the range that it speaks in HELLO, the store answers with the highest of it that it
 * speaks too.
 */

/** What this release speaks among its own. */
export const PROTOCOL_VERSION = 3;
/** From the next release on: the version of the release before. */
export const PROTOCOL_VERSION_OLDEST: number = 3;

/** The version that both speak, from HELLO's range, or 0 when there is none (CLOSE with VERSION). */
export function chooseVersion(versionMin: number, versionMax: number): number {
  const version = Math.min(versionMax, PROTOCOL_VERSION);
  return version >= Math.max(versionMin, PROTOCOL_VERSION_OLDEST) ? version : 0;
}

/** For log lines: the versions that this release speaks. */
export function versionsSpoken(): string {
  return PROTOCOL_VERSION_OLDEST === PROTOCOL_VERSION
    ? `version ${String(PROTOCOL_VERSION)}` : `versions ${String(PROTOCOL_VERSION_OLDEST)} to `
      + `${String(PROTOCOL_VERSION)}`;
}
