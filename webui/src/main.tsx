import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./app";
import "./tokens.css";
import "./ui/base.css";
import "./ui/controls.css";
import "./ui/surfaces.css";
import "./ui/table/table.css";
import "./ui/overlays.css";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
