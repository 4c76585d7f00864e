/** Inputs that once failed, by target: fed first, always. */
export const KEPT: Readonly<Record<string, readonly number[]>> = {};
