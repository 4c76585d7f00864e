/** A property of docs/model does not hold: what a seed fails with. */
export class PropertyBroken extends Error {}
