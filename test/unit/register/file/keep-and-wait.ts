/** A program for register-file.test.ts: keeps a register file, serves it, and waits to be killed. */
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { FileRegister } from '../../../../src/register/file/file-register.js';
import { QUIET } from '../real-world.js';

await FileRegister.open({ stateDir: process.argv[2] ?? '', isServed: true, machine: 'm1' }, {
  crc32,
  log: QUIET,
});
process.stdout.write('kept\n');
