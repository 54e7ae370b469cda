import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import { Fault } from "./shell/fault";
import "./tokens.css";
import "./ui/base.css";
import "./ui/controls.css";
import "./ui/surfaces.css";
import "./ui/table/table.css";
import "./ui/overlays.css";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    {/* Whatever goes wrong is told on the page, never by an empty one. */}
    <Fault>
      <App />
    </Fault>
  </StrictMode>,
);
