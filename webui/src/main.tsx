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
    {/* Any error shows on the page, never an empty page. */}
    <Fault>
      <App />
    </Fault>
  </StrictMode>,
);
