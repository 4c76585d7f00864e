/** The walks that operators may ask for, over the mail of a gateway that runs. */
import type { Clock } from '../../platform/ports.js';
import type { Walks } from '../admin/walk-api.js';
import type { GatewayCore } from '../daemon/core.js';
import { QueueAges } from './queue-ages.js';
import type { FindPorts } from './queue-find.js';
import { QueueFind } from './queue-find.js';

export function walksOf(
  gatewayId: string, core: GatewayCore, clock: Clock, messageOf: FindPorts['messageOf'],
): Walks {
  const { frame, entries, registry, names, toAscii } = core;
  const ports: FindPorts = {
    clock, frame, entries, registry, names, toAscii, messageOf,
    envelopeOf: (row) => core.envelopeOf(row),
    noteOf: (row, recipientCount) => core.noteOf(row, recipientCount),
    isIncomplete: () => core.isIncomplete,
  };
  return {
    ages: (question) => new QueueAges(gatewayId, question, ports),
    find: (question) => new QueueFind(question, ports),
  };
}
