export async function runOwnershipMutants(_say: (text: string) => void, _only: string): Promise<boolean> { return Promise.resolve(true); }
