// @ts-check
// The modes, and what the charts call them.

export const MODES = new Set(["ws_incremental", "http_incremental", "ws_full", "http_full"]);

export const MODE_BY_NAME = /** @type {Record<string, string>} */ ({
  "WebSocket, incremental": "ws_incremental", "HTTP, incremental": "http_incremental",
  "WebSocket, full": "ws_full", "HTTP, full": "http_full",
});
