/**
 * Why a store does not start, in one line for the operator that says what to do. Nothing was changed then:
 * what its predecessor left still speaks for it.
 */
export class StoreStartError extends Error {
  override readonly name = 'StoreStartError';
}
