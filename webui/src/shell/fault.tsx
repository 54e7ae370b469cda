import { Component, type ErrorInfo, type ReactNode } from "react";

import { Button } from "../ui/button";
import { Note } from "../ui/card";

/** Error boundary: if a page fails to render or to load, the rest of the web UI stays usable. */
export class Fault extends Component<{ children: ReactNode }, { error: unknown }> {
  state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  componentDidCatch(error: unknown, { componentStack }: ErrorInfo) {
    console.error(error, componentStack);
  }

  render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Note
        kind="error"
        role="alert"
        action={
          <Button small onClick={() => location.reload()}>
            Reload
          </Button>
        }
      >
        <b className="b">This page could not be shown.</b> {error instanceof Error ? error.message : String(error)}{" "}
        <span className="ink2">If the cluster was just upgraded, reloading is enough.</span>
      </Note>
    );
  }
}
