/**
 * OPEN: binds a handle to a queue; creates the queue if the store does not know it.
 *
 *   element  wire   field       meaning
 *   0        u31    handle      1 … 2^31 − 1, picked by the gateway
 *   1        u53    birth       incarnation of the gateway that created the queue
 *   2        u32    serial      which of its queues; (gateway, birth, serial) is the identity
 *   3        str    name        what it is called; an attribute
 *   4        str    queueClass  mail, bounce, …
 *   5        u8     ordering    0 fifo, 1 strict
 *   6        u53    lengthMax   entries it may hold, 0 for no limit of its own
 *   7        u53    bytesMax    bytes it may hold, 0 for no limit of its own
 *   8        str    ownerId     gateway that owns it
 *   9        [str]  claimants   gateways that may claim it beside the owner
 *   10       u53    epoch       of a new queue; 0: no member yet, waits for REFILL_BEGIN
 *   11       [str]  members     stores of that epoch
 *
 * Answered by ACK or REFUSAL.
 */
import type { Packer } from '../../platform/ports.js';
import {
  CLAIMANTS_MAX, MEMBERS_MAX, isBetween, isHandle, isIdentifier, isIdentifiers, isUint32, isWhole,
  unpackControl,
} from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { ORDERING_FIFO, ORDERING_STRICT } from '../reasons.js';

export interface Open {
  readonly handle: number;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly ordering: number;
  readonly lengthMax: number;
  readonly bytesMax: number;
  readonly ownerId: string;
  readonly claimants: readonly string[];
  readonly epoch: number;
  readonly members: readonly string[];
}

export function encodeOpen(packer: Packer, message: Open): Uint8Array {
  return packer.pack([
    message.handle, message.birth, message.serial, message.name, message.queueClass, message.ordering,
    message.lengthMax, message.bytesMax, message.ownerId, message.claimants, message.epoch, message.members,
  ]);
}

export function decodeOpen(packer: Packer, control: Uint8Array): Open | InvalidMessage {
  const values = unpackControl(packer, control, 12);
  if (values instanceof InvalidMessage) return values;
  const [
    handle, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, ownerId, claimants, epoch,
    members,
  ] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isWhole(birth)) return new InvalidMessage('birth');
  if (!isUint32(serial)) return new InvalidMessage('serial');
  if (!isIdentifier(name)) return new InvalidMessage('name');
  if (!isIdentifier(queueClass)) return new InvalidMessage('queueClass');
  if (!isBetween(ordering, ORDERING_FIFO, ORDERING_STRICT)) return new InvalidMessage('ordering');
  if (!isWhole(lengthMax)) return new InvalidMessage('lengthMax');
  if (!isWhole(bytesMax)) return new InvalidMessage('bytesMax');
  if (!isIdentifier(ownerId)) return new InvalidMessage('ownerId');
  if (!isIdentifiers(claimants, CLAIMANTS_MAX)) return new InvalidMessage('claimants');
  if (!isWhole(epoch)) return new InvalidMessage('epoch');
  if (!isIdentifiers(members, MEMBERS_MAX)) return new InvalidMessage('members');
  return {
    handle, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, ownerId, claimants, epoch,
    members,
  };
}
