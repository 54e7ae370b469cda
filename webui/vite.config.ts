import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The gateway serves what is built here below /det/.
export default defineConfig({
  base: "/det/",
  plugins: [react()],
  build: { outDir: "../services/gateway/static/webui", emptyOutDir: true, chunkSizeWarningLimit: 800 },
  // The gateway takes changes from pages of its own origin alone: the `Host` stays that of the page.
  server: { proxy: { "/api": { target: process.env.DET_MASTER ?? "http://localhost:8080", changeOrigin: false } } },
});
