import { type ReactNode, useEffect, useRef, useState } from "react";

/** Which parts of the page are in view; one observer serves all of them. */
const listeners = new Map<Element, (seen: boolean) => void>();
let observer: IntersectionObserver | undefined;

/** Reports whether an element is in view, or nearly; returns a function that unsubscribes. */
export function watch(element: Element, tell: (seen: boolean) => void): () => void {
  observer ??= new IntersectionObserver((entries) => entries.forEach((entry) => listeners.get(entry.target)?.(entry.isIntersecting)), {
    rootMargin: "200px",
  });
  listeners.set(element, tell);
  observer.observe(element);
  return () => {
    listeners.delete(element);
    observer!.unobserve(element);
  };
}

/**
 * Mounts its children only while they are in view, and reserves their space otherwise. With `stays` they stay mounted
 * from then on.
 */
export function Visible({
  height,
  name,
  stays = false,
  children,
}: {
  height: number;
  name: string;
  stays?: boolean;
  children: () => ReactNode;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => watch(box.current!, (now) => setSeen((before) => now || (stays && before))), [stays]);
  return (
    <div ref={box} className="place" data-name={name} style={{ minHeight: height }}>
      {seen && children()}
    </div>
  );
}
