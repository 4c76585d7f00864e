/**
 * The numbers of the messages, as byte 8 of a frame carries them, and their names for logs and metrics
 * (docs/PROTOCOL.md, "Messages"). Layouts are in messages/, one file each.
 */

export const HELLO = 0x01;
export const CHALLENGE = 0x02;
export const PROOF = 0x03;
export const WELCOME = 0x04;
export const CLOSE = 0x05;
export const HEARTBEAT = 0x10;
export const BEAT = 0x11;
export const FENCE = 0x20;
export const FENCED = 0x21;
export const DECLINED = 0x22;
export const RELEASE = 0x23;
export const CHANGES = 0x30;
export const ACK = 0x31;
export const REFUSAL = 0x32;
export const TEXTS = 0x33;
export const ASK = 0x40;
export const ASKED = 0x41;
export const TELL = 0x42;
export const TOLD = 0x43;
export const LIST = 0x44;
export const LISTED = 0x45;
export const PULL = 0x50;
export const BLOCK = 0x51;
export const TAIL = 0x52;
export const TAILED = 0x53;
export const FETCH = 0x54;
export const FETCHED = 0x55;
export const REFILL = 0x60;
export const REFILL_END = 0x61;

const NAMES: Readonly<Record<number, string>> = {
  [HELLO]: 'HELLO',
  [CHALLENGE]: 'CHALLENGE',
  [PROOF]: 'PROOF',
  [WELCOME]: 'WELCOME',
  [CLOSE]: 'CLOSE',
  [HEARTBEAT]: 'HEARTBEAT',
  [BEAT]: 'BEAT',
  [FENCE]: 'FENCE',
  [FENCED]: 'FENCED',
  [DECLINED]: 'DECLINED',
  [CHANGES]: 'CHANGES',
  [ACK]: 'ACK',
  [REFUSAL]: 'REFUSAL',
  [TEXTS]: 'TEXTS',
  [RELEASE]: 'RELEASE',
  [ASK]: 'ASK',
  [ASKED]: 'ASKED',
  [TELL]: 'TELL',
  [TOLD]: 'TOLD',
  [LIST]: 'LIST',
  [LISTED]: 'LISTED',
  [PULL]: 'PULL',
  [BLOCK]: 'BLOCK',
  [TAIL]: 'TAIL',
  [TAILED]: 'TAILED',
  [FETCH]: 'FETCH',
  [FETCHED]: 'FETCHED',
  [REFILL]: 'REFILL',
  [REFILL_END]: 'REFILL_END',
};

/** "CHANGES", or "type 0x7f" for a number that no message has. */
export function messageTypeName(type: number): string {
  return NAMES[type] ?? `type 0x${type.toString(16).padStart(2, '0')}`;
}
