/** The contract on the simulated register without faults. What faults do: client-faults.test.ts. */
import { contract } from './contract.js';
import { SimulatedWorld } from './simulated-world.js';

contract('simulated', () => Promise.resolve(new SimulatedWorld()));
