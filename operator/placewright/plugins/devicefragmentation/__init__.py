"""DeviceFragmentation: shares of devices that fit on one device each, placed where they strand the least."""
