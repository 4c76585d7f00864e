/** What a check of the simulator throws; its text begins with what is broken. Anything else that is thrown is a fault of a machine. */
export class GuaranteeBroken extends Error {}
