/** The contract on the file: in the process that keeps it, and over its socket. */
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { FileRegister, connectFileRegister } from '../../../../src/register/file/file-register.js';
import { contract } from '../contract.js';
import { QUIET, RealWorld, makeFolder, removeFolder } from '../real-world.js';

for (const isServed of [false, true]) {
  contract(isServed ? 'file over its socket' : 'file', async () => {
    const stateDir = makeFolder();
    const file = await FileRegister.open({ stateDir, isServed }, { crc32, log: QUIET });
    return new RealWorld(
      () => (isServed ? connectFileRegister(stateDir, QUIET) : file.client()),
      async () => {
        await file.close();
        removeFolder(stateDir);
      },
    );
  });
}
