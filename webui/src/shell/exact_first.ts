interface Named {
  name: string;
}

/**
 * Puts what is called exactly as typed first, and its group before the others; the rest keeps its order.
 * Whoever types the whole name of a page means that page, and not an experiment that has the word in its name.
 */
export function exactFirst<Item extends Named, Group extends { items: Item[] }>(groups: Group[], typed: string): Group[] {
  const name = typed.toLowerCase();
  const isExact = (item: Named) => item.name.toLowerCase() === name;
  const sorted = groups.map((group) => ({ ...group, items: exactOnesFirst(group.items, isExact) }));
  return exactOnesFirst(sorted, (group) => group.items.some(isExact));
}

function exactOnesFirst<One>(all: One[], isExact: (item: One) => boolean): One[] {
  return [...all.filter(isExact), ...all.filter((item) => !isExact(item))];
}
